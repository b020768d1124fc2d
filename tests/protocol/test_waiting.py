"""Directives: a workflow waits without a worker, an attempt, or anything kept in a process."""

from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    Reason,
    Sleep,
    Step,
    StepStatus,
    WaitForSignal,
    Yield,
)
from kernel.definition import OnFailed
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start


class Script:
    """An activity that returns these in turn and notes how it was called."""

    def __init__(self, *turns: Any) -> None:
        self.turns = iter(turns)
        self.seen: list[tuple[int, Any, str | None]] = []

    def __call__(self, ctx: ActivityContext) -> Any:
        kind = ctx.resume.kind if ctx.resume is not None else None
        self.seen.append((ctx.attempt, ctx.checkpoint, kind))
        return next(self.turns)


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_sleep_wakes_by_time_with_its_checkpoint_and_its_attempt_given_back(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    script = Script(Sleep(30, checkpoint={"$job": 1}), Sleep(30, checkpoint=[2]), "done")
    order = definition("test.sleep", {"a": script, "b": lambda ctx: ctx.output("a")})
    kernel = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order)
    for _ in range(2):
        run_until_idle(kernel, [QUEUE])
        asleep = kernel.get(workflow_id)
        assert asleep.status is InstanceStatus.WAITING
        assert asleep.steps["a"].status is StepStatus.WAITING
        assert asleep.claim_token is None
        why = kernel.why(workflow_id)
        assert (why.reason, why.step, why.until) == (Reason.TIMER, "a", asleep.claimable_time)
        TimeShift(kernel).advance(seconds=29)
        assert run_until_idle(kernel, [QUEUE]) == 0
        TimeShift(kernel).advance(seconds=1.5)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "done", "b": "done"}
    assert script.seen == [(1, None, None), (1, {"$job": 1}, "timer"), (1, [2], "timer")]
    step = instance.steps["a"]
    assert (step.attempt, step.wait_count, step.checkpoint, step.resume) == (1, 2, None, None)
    assert step.times.external_ms >= 60_000
    assert [each.outcome for each in step.attempts] == ["slept", "slept", "completed"]
    assert instance.waits == ()


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_wait_for_a_signal_falls_back_to_polling(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    wait = WaitForSignal("state_changed", wait_key="live-7", generation=2, poll_after=300)
    script = Script(wait, "done")
    order = definition("test.poll", {"a": script})
    kernel = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    [stored] = kernel.get(workflow_id).waits
    assert (stored.signal_type, stored.wait_key, stored.generation) == (
        "state_changed",
        "live-7",
        2,
    )
    why = kernel.why(workflow_id)
    assert why.reason is Reason.SIGNAL
    assert why.until == stored.poll_time
    TimeShift(kernel).advance(seconds=301)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}
    assert script.seen == [(1, None, None), (1, None, "poll")]


def test_a_wait_without_a_poll_time_wakes_by_signal_only(make_kernel: MakeKernel) -> None:
    order = definition("test.poll", {"a": Script(WaitForSignal("s", wait_key="k"))})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    TimeShift(kernel).advance(seconds=10 * 365 * 86400)
    kernel.reconcile()
    assert run_until_idle(kernel, [QUEUE]) == 0
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.WAITING
    assert instance.claimable_time.year == 9999
    why = kernel.why(workflow_id)
    assert (why.reason, why.until) == (Reason.SIGNAL, None)
    assert "signal only" in why.sentence


def test_a_yield_lets_others_go_first(make_kernel: MakeKernel) -> None:
    order_of_calls: list[str] = []

    def polite(ctx: ActivityContext) -> Any:
        order_of_calls.append(ctx.biz_key)
        return None if ctx.checkpoint else Yield(checkpoint=True)

    order = definition("test.yield", {"a": polite})
    kernel = make_kernel(order)
    ids = [start(kernel, order, biz_key=key) for key in ("first", "second")]
    run_until_idle(kernel, [QUEUE])
    assert order_of_calls == ["first", "second", "first", "second"]
    for workflow_id in ids:
        step = kernel.get(workflow_id).steps["a"]
        assert (step.attempt, step.wait_count) == (1, 0)


def test_a_sleep_of_no_time_comes_back_at_once(make_kernel: MakeKernel) -> None:
    script = Script(Sleep(0, checkpoint=1), "done")
    order = definition("test.sleep", {"a": script})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}
    assert script.seen[1] == (1, 1, "timer")


def test_several_waits_of_a_graph_wake_each_at_its_own_time(make_kernel: MakeKernel) -> None:
    short, long = Script(Sleep(60), "short"), Script(Sleep(600), "long")
    signal = Script(WaitForSignal("s", wait_key="k", poll_after=120), "signal")
    graph = definition(
        "test.graph",
        {"a": short, "b": long, "c": signal, "d": lambda _: "joined"},
        depends_on={"a": [], "b": [], "c": [], "d": ["a", "b", "c"]},
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    assert len(kernel.get(workflow_id).waits) == 3
    assert kernel.why(workflow_id).step == "a"
    _after(kernel, 61)
    assert {w.step for w in kernel.get(workflow_id).waits} == {"b", "c"}
    assert kernel.get(workflow_id).status is InstanceStatus.WAITING
    assert (kernel.why(workflow_id).step, kernel.why(workflow_id).reason) == ("c", Reason.SIGNAL)
    _after(kernel, 60)
    assert kernel.get(workflow_id).output == {"a": "short", "c": "signal"}
    assert len(long.seen) == 1
    _after(kernel, 480)
    assert kernel.get(workflow_id).output["d"] == "joined"
    assert [len(each.seen) for each in (short, long, signal)] == [2, 2, 2]


def test_a_failure_closes_the_waits_of_its_siblings(make_kernel: MakeKernel) -> None:
    def fails(ctx: ActivityContext) -> None:
        raise OSError("down")

    graph = definition(
        "test.graph", {"a": fails, "b": Script(Sleep(600))}, depends_on={"a": [], "b": []}
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.waits == ()
    assert instance.steps["b"].status is StepStatus.PENDING


@pytest.mark.parametrize(
    "directive",
    [
        Sleep(-1),
        Sleep(float("nan")),
        Sleep("5"),  # type: ignore[arg-type]
        Sleep(400 * 86400),
        Sleep(1, checkpoint=object()),
        Sleep(1, checkpoint="x" * 100_000),
        Yield(checkpoint={1: 2}),
        WaitForSignal("", wait_key="k"),
        WaitForSignal("s", wait_key="k" * 101),
        WaitForSignal("s", wait_key=5),  # type: ignore[arg-type]
        WaitForSignal("s", wait_key="\ud800"),
        WaitForSignal("s", wait_key="k", poll_after=-1),
        WaitForSignal("s", wait_key="k", generation="2"),  # type: ignore[arg-type]
        WaitForSignal("s", wait_key="k", generation=2**63),
        WaitForSignal("s", wait_key="k", generation=object()),  # type: ignore[arg-type]
    ],
)
def test_a_directive_that_makes_no_sense_fails_its_step_without_retry(
    make_kernel: MakeKernel, directive: Any
) -> None:
    order = definition(
        "test.bad", {"a": Step(Script(directive), on_failed=OnFailed.SKIP), "b": lambda _: "on"}
    )
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    error = instance.steps["a"].error
    assert error is not None
    assert error.code in ("invalid_value", "value_too_large")
    assert instance.output == {"b": "on"}


def test_a_workflow_that_sleeps_often_counts_no_attempt(make_kernel: MakeKernel) -> None:
    script = Script(*[Sleep(10)] * 12, "done")
    order = definition("test.sleep", {"a": script})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    instance = ended(kernel, workflow_id)
    assert instance.steps["a"].attempt == 1
    assert instance.steps["a"].wait_count == 12


def _after(kernel: Kernel, seconds: float) -> None:
    TimeShift(kernel).advance(seconds=seconds)
    run_until_idle(kernel, [QUEUE])
