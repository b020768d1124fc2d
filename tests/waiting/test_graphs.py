"""Several waits in one graph: each wakes its own step, and an end closes the others."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    FinalizerContext,
    InstanceStatus,
    Kernel,
    Sleep,
    Step,
    StepStatus,
    WaitForSignal,
    WorkflowCanceled,
    Yield,
    workflow_id_of,
)
from kernel.definition import OnFailed
from kernel.testing import TimeShift, run_until_idle
from tests.crash.invariants import of_instance
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

WORKFLOW_ID = workflow_id_of("test:1")


def sleeps(ctx: ActivityContext) -> Any:
    return ctx.resume.kind if ctx.resume else Sleep(60, checkpoint={"n": 1})


def listens(ctx: ActivityContext) -> Any:
    return ctx.resume.kind if ctx.resume else WaitForSignal("s", wait_key=ctx.step)


def fails(ctx: ActivityContext) -> Any:
    raise OSError("down")


def cancels(ctx: ActivityContext) -> Any:
    raise WorkflowCanceled("not wanted any more")


def ring(kernel: Kernel, step: str) -> bool:
    return kernel.deliver_signal(
        workflow_id=WORKFLOW_ID, signal_type="s", wait_key=step, signal_id=f"to:{step}"
    )


def graph(third: Any, **options: Any) -> Any:
    steps = {"sleeper": sleeps, "listener": listens, "third": third, "join": lambda _: "joined"}
    before = ["sleeper", "listener", "third"]
    depends_on = {**{name: [] for name in before}, "join": before}
    return definition("test.graph", steps, depends_on=depends_on, **options)


@pytest.mark.parametrize(
    ("third", "ending"),
    [(fails, InstanceStatus.FAILED), (cancels, InstanceStatus.CANCELED)],
)
def test_a_branch_that_ends_the_workflow_closes_the_waits_of_the_others(
    make_kernel: MakeKernel, third: Any, ending: InstanceStatus
) -> None:
    finalized: list[Any] = []

    def compensate(ctx: FinalizerContext) -> None:
        finalized.append(ctx.error)

    order = graph(third, failure_finalizer=compensate)
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert (instance.status, instance.waits, instance.claim_token) == (ending, (), None)
    assert of_instance(instance) == []
    assert StepStatus.WAITING not in {step.status for step in instance.steps.values()}
    assert len(finalized) == (ending is InstanceStatus.FAILED)
    TimeShift(kernel).advance(seconds=61)
    assert ring(kernel, "listener") is False
    assert run_until_idle(kernel, [QUEUE]) == 0
    assert kernel.get(WORKFLOW_ID) == instance


def test_a_branch_that_fails_while_the_others_wait_already_closes_their_waits(
    make_kernel: MakeKernel,
) -> None:
    def fails_later(ctx: ActivityContext) -> Any:
        if ctx.resume is None:
            return Sleep(30)
        raise OSError("down")

    order = graph(fails_later)
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    assert len(kernel.get(WORKFLOW_ID).waits) == 3
    TimeShift(kernel).advance(seconds=31)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert (instance.status, instance.waits) == (InstanceStatus.FAILED, ())
    assert instance.error is not None
    assert (instance.error.step, instance.steps["sleeper"].status) == ("third", StepStatus.PENDING)


def test_a_branch_that_fails_and_is_skipped_leaves_the_waits_alone(
    make_kernel: MakeKernel,
) -> None:
    order = graph(Step(fails, on_failed=OnFailed.SKIP))
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    assert {wait.step for wait in kernel.get(WORKFLOW_ID).waits} == {"sleeper", "listener"}
    assert ring(kernel, "listener") is True
    run_until_idle(kernel, [QUEUE])
    assert {wait.step for wait in kernel.get(WORKFLOW_ID).waits} == {"sleeper"}
    TimeShift(kernel).advance(seconds=61)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert instance.output == {"sleeper": "timer", "listener": "signal", "join": "joined"}
    assert instance.waits == ()


def test_one_signal_ends_every_wait_of_its_identity(make_kernel: MakeKernel) -> None:
    def same(ctx: ActivityContext) -> Any:
        return "on" if ctx.resume else WaitForSignal("s", wait_key="shared")

    order = definition("test.shared", {"a": same, "b": same}, depends_on={"a": [], "b": []})
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    ring(kernel, "shared")
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "on", "b": "on"}


def test_a_signal_that_comes_while_a_sibling_works_is_answered_by_the_same_claim(
    make_kernel: MakeKernel,
) -> None:
    is_at_work, may_go = threading.Event(), threading.Event()

    def works(ctx: ActivityContext) -> str:
        is_at_work.set()
        assert may_go.wait(20)
        return "worked"

    order = definition(
        "test.busy", {"listener": listens, "third": works}, depends_on={"listener": [], "third": []}
    )
    kernel, other = make_kernel(order), make_kernel(order)
    start(kernel, order)
    worker = threading.Thread(target=kernel.drain, args=([QUEUE],))
    worker.start()
    assert is_at_work.wait(20)
    eventually(lambda: other.get(WORKFLOW_ID).waits)
    assert ring(other, "listener") is True
    assert other.get(WORKFLOW_ID).waits != ()  # held: its holder looks when the wave is home
    may_go.set()
    worker.join(20)
    assert kernel.get(WORKFLOW_ID).output == {"listener": "signal", "third": "worked"}


@pytest.mark.parametrize(
    ("directive", "waking"),
    [
        (lambda: Sleep(60), "timer"),
        (lambda: WaitForSignal("s", wait_key="a", poll_after=60), "poll"),
        (lambda: WaitForSignal("s", wait_key="a"), "signal"),
        (Yield, None),
    ],
)
def test_a_directive_gives_the_attempt_back_and_the_timeout_is_of_one_call(
    make_kernel: MakeKernel, directive: Callable[[], Any], waking: str | None
) -> None:
    seen: list[tuple[int, str | None, float]] = []

    def waits(ctx: ActivityContext) -> Any:
        kind = ctx.resume.kind if ctx.resume else None
        seen.append((ctx.attempt, kind, ctx.seconds_left))
        return directive() if len(seen) < 4 else "done"

    order = definition("test.attempts", {"a": Step(waits, timeout=20)})
    kernel = make_kernel(order)
    start(kernel, order)
    for number in range(4):
        run_until_idle(kernel, [QUEUE])
        TimeShift(kernel).advance(seconds=61)
        if waking == "signal":
            kernel.deliver_signal(
                workflow_id=WORKFLOW_ID, signal_type="s", wait_key="a", signal_id=str(number)
            )
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert instance.status is InstanceStatus.COMPLETED
    assert [call[:2] for call in seen] == [(1, None)] + [(1, waking)] * 3
    assert all(15 < remaining <= 20 for _, _, remaining in seen)
    assert (instance.steps["a"].attempt, instance.steps["a"].failures) == (1, 0)
