"""The reliable end: finalizers run before the terminal status, and again until they succeed."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from kernel import (
    FinalizerContext,
    InstanceStatus,
    Kernel,
    NonRetryable,
    Reason,
    WorkflowCanceled,
)
from kernel.engine.wave import WaveRunner
from kernel.limits import FINALIZER_POISONED_SECONDS
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import (
    QUEUE,
    DeadWorker,
    MakeKernel,
    definition,
    ended,
    pass_time_until_due,
    start,
)


class Finalizer:
    """Raises these in turn, then succeeds; notes what it saw."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors: Iterator[BaseException] = iter(errors)
        self.seen: list[FinalizerContext] = []
        self.look: Callable[[FinalizerContext], Any] = lambda _: None
        self.found: list[Any] = []

    def __call__(self, ctx: FinalizerContext) -> None:
        self.seen.append(ctx)
        self.found.append(self.look(ctx))
        error = next(self.errors, None)
        if error is not None:
            raise error


def fails(ctx: object) -> None:
    raise NonRetryable("no luck", code="unlucky")


SUCCESS, FAILURE = "success_finalizer", "failure_finalizer"
ENDS = {SUCCESS: InstanceStatus.COMPLETED, FAILURE: InstanceStatus.FAILED}


def made(
    make_kernel: MakeKernel, kind: str, finalizer: Callable[..., Any], **config: Any
) -> tuple[Kernel, str]:
    """Start a workflow that succeeds or fails in its second step."""
    options: dict[str, Any] = {kind: finalizer}
    order = definition(
        "test.final",
        {"a": lambda _: {"n": 1}, "b": fails if kind == FAILURE else lambda _: "b"},
        ports="ports",
        **options,
    )
    kernel = make_kernel(order, **config)
    return kernel, start(kernel, order, {"order": 1}, fencing_token=4)


@pytest.mark.parametrize(
    ("kind", "status"),
    [(SUCCESS, InstanceStatus.RUNNING), (FAILURE, InstanceStatus.FAILING)],
)
def test_a_finalizer_runs_before_the_terminal_status(
    make_kernel: MakeKernel, kind: str, status: InstanceStatus
) -> None:
    finalizer = Finalizer()
    kernel, workflow_id = made(make_kernel, kind, finalizer)
    finalizer.look = lambda ctx: kernel.get(ctx.workflow_id).status
    run_until_idle(kernel, [QUEUE])
    assert finalizer.found == [status]
    instance = kernel.get(workflow_id)
    assert instance.status is ENDS[kind]
    assert instance.finished_at is not None
    [ctx] = finalizer.seen
    assert (ctx.workflow_id, ctx.biz_key, ctx.fencing_token) == (workflow_id, "test:1", 4)
    assert (ctx.input, ctx.ports, ctx.attempt) == ({"order": 1}, "ports", 1)
    if kind == SUCCESS:
        assert (ctx.outputs, ctx.error) == ({"a": {"n": 1}, "b": "b"}, None)
    else:
        assert ctx.outputs == {"a": {"n": 1}}
        assert ctx.error == {"step": "b", "code": "unlucky", "message": "no luck"}


@pytest.mark.parametrize("kind", [SUCCESS, FAILURE])
def test_an_async_finalizer_is_awaited(make_kernel: MakeKernel, kind: str) -> None:
    awaited: list[str] = []

    async def finalize(ctx: FinalizerContext) -> None:
        awaited.append(ctx.workflow_id)

    kernel, workflow_id = made(make_kernel, kind, finalize)
    run_until_idle(kernel, [QUEUE])
    assert awaited == [workflow_id]
    assert kernel.get(workflow_id).status is ENDS[kind]


@pytest.mark.parametrize("kind", [SUCCESS, FAILURE])
def test_a_finalizer_that_raises_is_retried_with_backoff_and_seen_to_be(
    make_kernel: MakeKernel, kind: str
) -> None:
    finalizer = Finalizer(OSError("mail \ud800 down"), NonRetryable("no"), SystemExit(1))
    kernel, workflow_id = made(make_kernel, kind, finalizer)
    for attempt in (1, 2, 3):
        kernel.drain([QUEUE], max_claims=1)
        instance = kernel.get(workflow_id)
        assert not instance.status.is_terminal
        assert instance.claim_token is None
        record = instance.finalizer
        assert record is not None
        assert record.error is not None
        assert record.attempt == attempt
        assert record.not_before == instance.claimable_time
        assert instance.blocked_on is not None
        wait = instance.claimable_time - instance.updated_at
        assert (
            timedelta(seconds=2 ** (attempt - 2)) <= wait <= timedelta(seconds=2 ** (attempt - 1))
        )
        assert instance.blocked_on.reason is Reason.RETRY_BACKOFF
        pass_time_until_due(kernel, workflow_id)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is ENDS[kind]
    assert [ctx.attempt for ctx in finalizer.seen] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "end"), [(SUCCESS, InstanceStatus.CANCELED), (FAILURE, InstanceStatus.FAILED)]
)
def test_a_cancel_in_a_finalizer_ends_the_workflow(
    make_kernel: MakeKernel, kind: str, end: InstanceStatus
) -> None:
    kernel, workflow_id = made(make_kernel, kind, Finalizer(WorkflowCanceled("object gone")))
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is end
    if end is InstanceStatus.CANCELED:
        assert instance.error is not None
        assert (instance.error.code, instance.error.message) == ("workflow_canceled", "object gone")


@pytest.mark.parametrize("kind", [SUCCESS, FAILURE])
def test_a_finalizer_whose_worker_died_runs_again_and_the_death_is_counted(
    make_kernel: MakeKernel, dead_worker: DeadWorker, kind: str
) -> None:
    finalizer = Finalizer(OSError("first"))
    kernel, workflow_id = made(make_kernel, kind, finalizer)
    run_until_idle(kernel, [QUEUE])
    _die_in_finalizer(kernel, dead_worker, workflow_id, times=2)
    record = kernel.get(workflow_id).finalizer
    assert record is not None
    assert (record.attempt, record.recoveries) == (3, 1)
    finalizer.look = lambda ctx: kernel.get(ctx.workflow_id).finalizer
    run_until_idle(kernel, [QUEUE])
    assert (finalizer.found[-1].attempt, finalizer.found[-1].recoveries) == (4, 2)
    assert kernel.get(workflow_id).status is ENDS[kind]


def test_a_finalizer_that_kills_its_worker_every_time_is_tried_hourly(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    finalizer = Finalizer(OSError("first"))
    kernel, workflow_id = made(make_kernel, FAILURE, finalizer, max_recoveries=2)
    run_until_idle(kernel, [QUEUE])
    _die_in_finalizer(kernel, dead_worker, workflow_id, times=3)
    run_until_idle(kernel, [QUEUE])
    poisoned = kernel.get(workflow_id)
    assert len(finalizer.seen) == 1, "not entered again at once"
    assert poisoned.status is InstanceStatus.FAILING
    assert poisoned.finalizer is not None
    assert poisoned.finalizer.error is not None
    assert poisoned.finalizer.error.code == "worker_lost"
    wait = poisoned.claimable_time - poisoned.updated_at
    assert wait == timedelta(seconds=FINALIZER_POISONED_SECONDS)
    assert ended(kernel, workflow_id).status is InstanceStatus.FAILED
    assert len(finalizer.seen) == 2


def test_an_error_of_a_finalizer_ends_the_row_of_its_deaths(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    finalizer = Finalizer(OSError("first"), OSError("second"))
    kernel, workflow_id = made(make_kernel, FAILURE, finalizer, max_recoveries=2)
    for entered in (1, 2, 3):
        run_until_idle(kernel, [QUEUE])
        assert len(finalizer.seen) == entered, "two deaths in a row are not too many"
        if entered < 3:
            _die_in_finalizer(kernel, dead_worker, workflow_id, times=2)
    assert kernel.get(workflow_id).status is InstanceStatus.FAILED


def test_a_stop_leaves_a_finalizer_to_the_next_worker_as_if_untouched(
    make_kernel: MakeKernel,
) -> None:
    finalizer = Finalizer()
    order = definition(
        "test.final", {"a": lambda _: kernel.request_stop()}, success_finalizer=finalizer
    )
    kernel, other = make_kernel(order), make_kernel(order)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    record = kernel.get(workflow_id).finalizer
    assert record is not None
    assert (record.kind, record.attempt, record.started_at) == ("success", 0, None)
    run_until_idle(other, [QUEUE])
    assert [ctx.attempt for ctx in finalizer.seen] == [1]
    assert other.get(workflow_id).status is InstanceStatus.COMPLETED


def test_a_stop_after_a_finalizer_was_begun_gives_the_attempt_back(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    finalizer = Finalizer()
    kernel, workflow_id = made(make_kernel, FAILURE, finalizer)
    run_begun = WaveRunner.run_begun

    def then_stop(self: WaveRunner, steps: tuple[str, ...]) -> None:
        run_begun(self, steps)
        kernel.request_stop()

    monkeypatch.setattr(WaveRunner, "run_begun", then_stop)
    kernel.drain([QUEUE])
    record = kernel.get(workflow_id).finalizer
    assert record is not None
    assert (record.attempt, record.started_at, len(finalizer.seen)) == (0, None, 0)


def test_without_finalizers_a_workflow_ends_by_itself(make_kernel: MakeKernel) -> None:
    order = definition("test.final", {"a": fails})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.FAILED


def _die_in_finalizer(
    kernel: Kernel, dead_worker: DeadWorker, workflow_id: str, *, times: int
) -> None:
    pass_time_until_due(kernel, workflow_id)
    for _ in range(times):
        dead_worker.begins(kernel, workflow_id)
        TimeShift(kernel).advance(seconds=1)
