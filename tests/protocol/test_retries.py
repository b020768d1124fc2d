"""Attempts are counted, spaced and ended as the policy says."""

from collections.abc import Iterator
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    NonRetryable,
    OnFailed,
    Reason,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
)
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start


class Flaky:
    """An activity that raises these errors in turn and then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors: Iterator[BaseException] = iter(errors)
        self.calls: list[int] = []

    def __call__(self, ctx: ActivityContext) -> str:
        self.calls.append(ctx.attempt)
        error = next(self.errors, None)
        if error is not None:
            raise error
        return "at last"


@pytest.mark.parametrize("max_retry", [0, 1, 3])
def test_a_step_is_tried_once_and_max_retry_times_again(
    make_kernel: MakeKernel, max_retry: int
) -> None:
    flaky = Flaky(*[OSError("down")] * 10)
    retry = RetryPolicy(max_retry=max_retry, backoff="none")
    order = definition("test.flaky", {"a": Step(flaky, retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert flaky.calls == list(range(1, max_retry + 2))
    assert instance.steps["a"].attempt == max_retry + 1
    assert instance.error is not None
    assert (instance.error.step, instance.error.code) == ("a", "OSError")
    assert [each.outcome for each in instance.steps["a"].attempts] == ["failed"] * (max_retry + 1)


def test_a_fixed_backoff_is_kept_and_explained(make_kernel: MakeKernel) -> None:
    flaky = Flaky(OSError("down"))
    retry = RetryPolicy(max_retry=1, backoff="fixed", initial=60)
    order = definition("test.flaky", {"a": Step(flaky, retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    between = kernel.get(workflow_id)
    assert between.status is InstanceStatus.RUNNING
    assert between.steps["a"].error is not None
    why = kernel.why(workflow_id)
    assert (why.reason, why.step) == (Reason.RETRY_BACKOFF, "a")
    assert why.until == between.steps["a"].not_before == between.claimable_time
    TimeShift(kernel).advance(seconds=50)
    assert run_until_idle(kernel, [QUEUE]) == 0
    TimeShift(kernel).advance(seconds=11)
    assert run_until_idle(kernel, [QUEUE]) == 1
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.steps["a"].error is None
    times = instance.steps["a"].times
    assert 59_000 <= times.external_ms <= 60_000, "backoff is time spent waiting for the outside"


def test_an_exponential_backoff_never_exceeds_its_doubling_bound(make_kernel: MakeKernel) -> None:
    flaky = Flaky(*[OSError("down")] * 4)
    retry = RetryPolicy(max_retry=4, initial=10, cap=30)
    order = definition("test.flaky", {"a": Step(flaky, retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    for bound in (10, 20, 30, 30):
        assert kernel.drain([QUEUE], max_claims=1) == 1  # a short backoff may be over by now
        step = kernel.get(workflow_id).steps["a"]
        assert step.since is not None
        waited = (step.not_before - step.since).total_seconds() if step.not_before else 0.0
        assert 0 <= waited <= bound
        TimeShift(kernel).advance(seconds=bound + 1)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "at last"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NonRetryable("bad audio", code="unsupported_format"), "unsupported_format"),
        (NonRetryable(), "non_retryable"),
        (ZeroDivisionError("no"), "ZeroDivisionError"),
    ],
)
def test_an_error_nothing_can_cure_is_not_retried(
    make_kernel: MakeKernel, error: BaseException, code: str
) -> None:
    flaky = Flaky(error)
    retry = RetryPolicy(max_retry=5, non_retryable=(ArithmeticError,))
    order = definition("test.flaky", {"a": Step(flaky, retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.error is not None
    assert instance.error.code == code
    assert flaky.calls == [1]


def test_a_step_that_may_be_skipped_lets_the_workflow_go_on(make_kernel: MakeKernel) -> None:
    seen: list[Any] = []
    order = definition(
        "test.flaky",
        {
            "a": Step(Flaky(OSError("down")), on_failed=OnFailed.SKIP),
            "b": lambda ctx: seen.append(ctx.output("a")),
        },
    )
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.steps["a"].status is StepStatus.SKIPPED
    assert instance.steps["a"].error is not None
    assert seen == [None]
    assert "a" not in instance.output
    assert instance.error is None


def test_directives_between_failures_use_up_no_retry(make_kernel: MakeKernel) -> None:
    turns = iter(["sleep", "raise", "sleep", "sleep", "raise", "done"])
    attempts: list[int] = []

    def activity(ctx: ActivityContext) -> Any:
        attempts.append(ctx.attempt)
        match next(turns):
            case "sleep":
                return Sleep(5)
            case "raise":
                raise OSError("down")
        return "done"

    retry = RetryPolicy(max_retry=2, backoff="none")
    order = definition("test.flaky", {"a": Step(activity, retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    assert ended(kernel, workflow_id).status is InstanceStatus.COMPLETED
    assert attempts == [1, 1, 2, 2, 2, 3]


def test_a_checkpoint_is_cleared_by_an_exception(make_kernel: MakeKernel) -> None:
    checkpoints: list[Any] = []

    def activity(ctx: ActivityContext) -> Any:
        checkpoints.append(ctx.checkpoint)
        if len(checkpoints) == 1:
            return Sleep(1, checkpoint={"job": 1})
        if len(checkpoints) == 2:
            raise OSError("down")
        return None

    retry = RetryPolicy(max_retry=1, backoff="none")
    order = definition("test.flaky", {"a": Step(activity, retry=retry)})
    kernel = make_kernel(order)
    ended(kernel, start(kernel, order))
    assert checkpoints == [None, {"job": 1}, None]


def test_only_the_last_attempts_are_kept_and_the_totals_count_all(make_kernel: MakeKernel) -> None:
    retry = RetryPolicy(max_retry=14, backoff="none")
    order = definition("test.flaky", {"a": Step(Flaky(*[OSError("x")] * 14), retry=retry)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    step = kernel.get(workflow_id).steps["a"]
    assert [each.n for each in step.attempts] == list(range(6, 16))
    assert step.attempt == 15
