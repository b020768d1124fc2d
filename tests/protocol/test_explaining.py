"""Why is it not moving: from stored facts, for every reason, in one sentence."""

import re
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    NotFound,
    Reason,
    RetryPolicy,
    Sleep,
    Step,
    WaitForSignal,
)
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start


def made(make_kernel: MakeKernel, activity: Any, **config: Any) -> tuple[Kernel, str]:
    order = definition("test.why", {"a": activity})
    kernel = make_kernel(order, **config)
    return kernel, start(kernel, order)


def fails(ctx: ActivityContext) -> None:
    raise OSError("psp is down")


@pytest.mark.parametrize(
    ("activity", "reason", "sentence"),
    [
        (lambda _: Sleep(90), Reason.TIMER, r"at step a · timer · goes on in 1m\d\ds"),
        (
            lambda _: WaitForSignal("s", wait_key="k", poll_after=7200),
            Reason.SIGNAL,
            r"at step a · signal · looks again in (2h00m|1h59m)",
        ),
        (lambda _: WaitForSignal("s", wait_key="k"), Reason.SIGNAL, "wakes by signal only"),
        (
            Step(fails, retry=RetryPolicy(max_retry=1, backoff="fixed", initial=30)),
            Reason.RETRY_BACKOFF,
            r"retry_backoff.* goes on in \d\d\.\ds",
        ),
    ],
)
def test_a_wait_is_explained_by_what_ends_it(
    make_kernel: MakeKernel, activity: Any, reason: Reason, sentence: str
) -> None:
    kernel, workflow_id = made(make_kernel, activity)
    run_until_idle(kernel, [QUEUE])
    TimeShift(kernel).advance(seconds=5)
    why = kernel.why(workflow_id)
    instance = kernel.get(workflow_id)
    assert (why.workflow_id, why.status) == (workflow_id, instance.status)
    assert (why.reason, why.step) == (reason, "a")
    assert why.since is not None
    assert why.since == instance.steps["a"].since
    assert re.search(sentence, why.sentence), why.sentence
    assert why.sentence.startswith("waiting for 5.")


def test_what_is_due_is_queued_and_after_a_while_overdue(make_kernel: MakeKernel) -> None:
    kernel, workflow_id = made(make_kernel, lambda _: None)
    why = kernel.why(workflow_id)
    assert (why.reason, why.step) == (Reason.LANE_BACKLOG, "a")
    assert "due now, queued on work (P1)" in why.sentence
    TimeShift(kernel).advance(seconds=90)
    why = kernel.why(workflow_id)
    assert "due for 1m3" in why.sentence
    assert "no worker" in why.sentence


def test_what_runs_says_where_and_for_how_long_its_lease_is_good(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    kernel, workflow_id = made(make_kernel, lambda _: None)
    dead_worker.begins(kernel, workflow_id, lease_over=False)
    why = kernel.why(workflow_id)
    assert (why.reason, why.step) == (None, "a")
    assert re.match(r"runs step a on elsewhere:1:1; its lease is good for 1\d\.", why.sentence)


@pytest.mark.parametrize(
    ("activity", "status", "sentence"),
    [
        (lambda _: None, InstanceStatus.COMPLETED, "completed: nothing is left to do"),
        (fails, InstanceStatus.FAILED, "failed at step a: OSError: psp is down"),
    ],
)
def test_what_has_ended_says_how(
    make_kernel: MakeKernel, activity: Any, status: InstanceStatus, sentence: str
) -> None:
    kernel, workflow_id = made(make_kernel, activity)
    run_until_idle(kernel, [QUEUE])
    why = kernel.why(workflow_id)
    assert (why.status, why.reason, why.sentence) == (status, None, sentence)


def test_a_superseded_workflow_says_why(make_kernel: MakeKernel) -> None:
    kernel, workflow_id = made(make_kernel, lambda _: None)
    kernel.supersede(workflow_id, reason="replaced by order 43")
    assert kernel.why(workflow_id).sentence == "canceled: superseded: replaced by order 43"


def test_what_does_not_exist_is_not_found(kernel: Kernel) -> None:
    for look in (kernel.why, kernel.get):
        with pytest.raises(NotFound, match="wf_none"):
            look("wf_none")
    assert kernel.find(biz_key="none") is None
