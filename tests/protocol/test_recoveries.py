"""Deaths of workers: the next one goes on, innocents stay apart, a poison pill ends."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    OnFailed,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
    WorkflowInstance,
)
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, ended, start

RETRY = RetryPolicy(max_retry=1, backoff="none")


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_step_whose_worker_died_runs_again_elsewhere(
    make_kernel: MakeKernel, dead_worker: DeadWorker, with_redis: bool
) -> None:
    calls: list[int] = []
    order = definition("test.dead", {"a": lambda ctx: calls.append(ctx.attempt)})
    kernel = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order)
    dead_worker.begins(kernel, workflow_id, lease_over=False)
    assert run_until_idle(kernel, [QUEUE]) == 0, "its lease still holds"
    assert "elsewhere:1:1" in kernel.why(workflow_id).sentence
    TimeShift(kernel).advance(seconds=16)
    assert "went silent" in kernel.why(workflow_id).sentence
    kernel.reconcile()
    assert run_until_idle(kernel, [QUEUE]) == 1
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert calls == [2]
    step = instance.steps["a"]
    assert [each.outcome for each in step.attempts] == ["lost", "completed"]
    assert step.recoveries == 0, "in a row: coming home ends the row"


def test_a_death_uses_up_no_retry(make_kernel: MakeKernel, dead_worker: DeadWorker) -> None:
    calls: list[int] = []

    def flaky(ctx: ActivityContext) -> str:
        calls.append(ctx.attempt)
        if len(calls) == 1:
            raise OSError("down")
        return "done"

    order = definition("test.dead", {"a": Step(flaky, retry=RETRY)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    for _ in range(3):
        dead_worker.begins(kernel, workflow_id)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}
    assert calls == [4, 5]


@pytest.mark.parametrize("on_failed", list(OnFailed))
def test_a_step_that_kills_its_worker_every_time_is_given_up(
    make_kernel: MakeKernel, dead_worker: DeadWorker, on_failed: OnFailed
) -> None:
    calls: list[str] = []
    order = definition(
        "test.poison",
        {
            "a": Step(
                lambda ctx: calls.append(ctx.step),
                retry=RetryPolicy(max_retry=9),
                on_failed=on_failed,
            ),
            "b": lambda ctx: calls.append(ctx.step),
        },
    )
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    for deaths in range(1, 7):
        left = dead_worker.begins(kernel, workflow_id)
        assert left.steps["a"].recoveries == deaths - 1
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    error = instance.steps["a"].error
    assert error is not None
    assert error.code == "worker_lost"
    assert instance.steps["a"].attempt == 6
    if on_failed is OnFailed.STOP:
        assert (instance.status, calls) == (InstanceStatus.FAILED, [])
        assert instance.error is not None
        assert instance.error.code == "worker_lost"
    else:
        assert (instance.status, calls) == (InstanceStatus.COMPLETED, ["b"])


def test_coming_home_begins_the_row_of_deaths_anew(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    order = definition(
        "test.poison", {"a": lambda ctx: Sleep(100) if ctx.resume is None else "done"}
    )
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    for _ in range(5):
        dead_worker.begins(kernel, workflow_id)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).steps["a"].recoveries == 0
    assert kernel.get(workflow_id).status is InstanceStatus.WAITING
    TimeShift(kernel).advance(seconds=101)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}


def test_a_replay_begins_the_row_of_deaths_anew(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    order = definition("test.poison", {"a": lambda _: "done"})
    kernel = make_kernel(order, max_recoveries=1)
    workflow_id = start(kernel, order)
    for _ in range(2):
        dead_worker.begins(kernel, workflow_id)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.FAILED
    start(kernel, order, fencing_token=2)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}


def test_of_a_wave_the_suspects_run_alone_after_the_innocents(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    running: set[str] = set()
    together: list[set[str]] = []
    lock = threading.Lock()

    def work(ctx: ActivityContext) -> str:
        with lock:
            running.add(ctx.step)
            together.append(set(running))
        ctx.cancelled.wait(0.05)
        with lock:
            running.discard(ctx.step)
        return ctx.step

    graph = definition("test.suspects", {"a": work, "b": work}, depends_on={"a": [], "b": []})
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    for _ in range(2):
        dead_worker.begins(kernel, workflow_id)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert all(len(each) == 1 for each in together)


def test_a_superseded_instance_is_not_recovered(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    calls: list[str] = []
    order = definition("test.dead", {"a": lambda ctx: calls.append(ctx.step)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    left = dead_worker.begins(kernel, workflow_id)
    assert left.steps["a"].status is StepStatus.RUNNING
    assert kernel.supersede(workflow_id, reason="obsolete")
    kernel.reconcile()
    assert run_until_idle(kernel, [QUEUE]) == 0
    assert calls == []


def _checked_times(instance: WorkflowInstance, step: str, tolerance_ms: int = 1500) -> Any:
    """Of one step: the four times are never negative and sum up to its wall time."""
    state = instance.steps[step]
    times = state.times
    parts = (times.scheduling_ms, times.traffic_ms, times.activity_ms, times.external_ms)
    assert all(part >= 0 for part in parts)
    assert state.finished_at is not None
    starts = [instance.steps[name].finished_at for name in state.depends_on]
    begun = max([instance.round_started_at, *(s for s in starts if s is not None)])
    wall = (state.finished_at - begun) / timedelta(milliseconds=1)
    assert abs(sum(parts) - wall) <= tolerance_ms
    return times


def test_the_four_times_of_a_step_add_up_to_its_wall_time(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    turns = iter(["sleep", "raise", "done"])

    def activity(ctx: ActivityContext) -> Any:
        ctx.cancelled.wait(0.1)
        match next(turns):
            case "sleep":
                return Sleep(50)
            case "raise":
                raise OSError("down")
        return "done"

    retry = RetryPolicy(max_retry=1, backoff="fixed", initial=70)
    order = definition("test.times", {"a": Step(activity, retry=retry), "b": Step(lambda _: "b")})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    TimeShift(kernel).advance(seconds=20)  # nobody takes it
    dead_worker.begins(kernel, workflow_id)  # a lease of 15 s and a second until the next one
    kernel.reconcile()
    for late in (0, 50 + 5, 70 + 7):
        TimeShift(kernel).advance(seconds=late)
        run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    times = _checked_times(instance, "a", tolerance_ms=200)
    assert 120_000 - 500 <= times.external_ms <= 120_000 + 500
    assert 15_000 <= times.activity_ms <= 17_000
    assert 20_000 + 1_000 + 5_000 + 7_000 - 1_000 <= times.scheduling_ms <= 36_000
    assert times.traffic_ms == 0
    _checked_times(instance, "b", tolerance_ms=200)
    for attempt in instance.steps["a"].attempts:
        assert attempt.to >= attempt.from_
        assert min(attempt.activity_ms, attempt.scheduling_ms, attempt.external_ms) >= 0


def test_a_replayed_steps_times_begin_with_its_round(make_kernel: MakeKernel) -> None:
    order = definition("test.times", {"a": lambda ctx: ctx.input["ok"] or 1 / 0})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order, {"ok": 0})
    ended(kernel, workflow_id)
    TimeShift(kernel).advance(seconds=1000)
    start(kernel, order, {"ok": 1}, fencing_token=2)
    times = _checked_times(ended(kernel, workflow_id), "a", tolerance_ms=200)
    assert times.scheduling_ms < 1000
