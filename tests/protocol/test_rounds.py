"""Registering work: every row of the table of `start_or_resume`, alone and in races."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    InvalidValue,
    Kernel,
    Priority,
    Sleep,
    StartResult,
    Step,
    StepStatus,
    ValueTooLarge,
    WorkflowCanceled,
    WorkflowInstance,
    workflow_id_of,
)
from kernel.protocol import homecoming
from kernel.protocol.coming_home import home_alone
from kernel.protocol.commit import Commit
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start

RACERS = 16


def act(ctx: ActivityContext) -> Any:
    """Do what the input says."""
    match ctx.input:
        case "fail":
            raise OSError("down")
        case "cancel":
            raise WorkflowCanceled("gone")
        case "sleep" if ctx.resume is None:
            return Sleep(3600)
    return ctx.input


def fails_always(ctx: object) -> None:
    raise OSError("still compensating")


ORDER = definition("test.round", {"a": act})
FAILING = definition("test.failing", {"a": act}, failure_finalizer=fails_always)
#: How to bring an instance of round 5 into each status: definition, input, whether to run it.
STATUSES: dict[str, tuple[Any, str, bool]] = {
    "running": (ORDER, "ok", False),
    "waiting": (ORDER, "sleep", True),
    "failing": (FAILING, "fail", True),
    "completed": (ORDER, "ok", True),
    "failed": (ORDER, "fail", True),
    "canceled": (ORDER, "cancel", True),
}


def brought_to(make_kernel: MakeKernel, status: str) -> tuple[Kernel, Any]:
    of, value, runs = STATUSES[status]
    kernel = make_kernel(ORDER, FAILING)
    workflow_id = start(kernel, of, value, fencing_token=5)
    if runs:
        run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status == status
    return kernel, of


def test_the_first_registration_creates(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    result = kernel.start_or_resume(
        ORDER.plan, biz_key="order:t1:42", input="ok", fencing_token=3, priority=Priority.RECOVERY
    )
    assert (result.activated, result.accepted, result.reason) == (True, True, "created")
    assert result.workflow_id == workflow_id_of("order:t1:42")
    instance = kernel.get(result.workflow_id)
    assert instance == result.instance == kernel.find(biz_key="order:t1:42")
    assert (instance.status, instance.fencing_token, instance.priority) == ("running", 3, 3)
    assert instance.claimable_time <= instance.created_at


@pytest.mark.parametrize("status", STATUSES)
def test_a_late_registration_of_an_old_round_changes_nothing(
    make_kernel: MakeKernel, status: str
) -> None:
    kernel, of = brought_to(make_kernel, status)
    result = _again(kernel, of, 4, Priority.REALTIME)
    assert (result.activated, result.accepted, result.reason) == (False, False, "stale_round")


@pytest.mark.parametrize("status", STATUSES)
def test_the_same_round_again_is_registered_already(make_kernel: MakeKernel, status: str) -> None:
    kernel, of = brought_to(make_kernel, status)
    result = _again(kernel, of, 5, Priority.RECOVERY)
    assert (result.activated, result.accepted, result.reason) == (False, True, "registered")


@pytest.mark.parametrize("status", ["running", "waiting", "failing"])
def test_a_new_round_waits_while_the_old_one_converges(
    make_kernel: MakeKernel, status: str
) -> None:
    kernel, of = brought_to(make_kernel, status)
    result = _again(kernel, of, 6, Priority.REALTIME)
    assert (result.activated, result.accepted, result.reason) == (False, False, "busy")


@pytest.mark.parametrize("status", ["completed", "canceled"])
def test_a_closed_instance_takes_no_new_round(make_kernel: MakeKernel, status: str) -> None:
    kernel, of = brought_to(make_kernel, status)
    result = _again(kernel, of, 6, Priority.REALTIME)
    assert (result.activated, result.accepted, result.reason) == (False, False, "closed")


def test_a_new_round_of_a_failed_instance_replays_it(make_kernel: MakeKernel) -> None:
    kernel, of = brought_to(make_kernel, "failed")
    result = kernel.start_or_resume(of.plan, biz_key="test:1", input="ok", fencing_token=6)
    assert (result.activated, result.accepted, result.reason) == (True, True, "replayed")
    assert (result.instance.fencing_token, result.instance.retry_count) == (6, 1)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(result.workflow_id).output == {"a": "ok"}


def _again(kernel: Kernel, of: Any, token: int, priority: Priority) -> StartResult:
    """Register again with another input; where it is not the winner, nothing may change."""
    before = kernel.find(biz_key="test:1")
    result = kernel.start_or_resume(
        of.plan, biz_key="test:1", input="other", fencing_token=token, priority=priority
    )
    assert kernel.find(biz_key="test:1") == before
    return result


def test_only_what_had_failed_runs_again_with_the_whole_new_input(make_kernel: MakeKernel) -> None:
    calls: list[tuple[str, Any, int, Any]] = []

    def note(ctx: ActivityContext) -> Any:
        calls.append((ctx.step, ctx.input, ctx.attempt, ctx.checkpoint))
        if ctx.step == "b" and ctx.input["round"] == 1:
            if ctx.checkpoint is None:
                return Sleep(1, checkpoint="old")
            raise OSError("down")
        return f"{ctx.step}{ctx.input['round']}"

    order = definition("test.replay", {name: Step(note) for name in "abc"})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order, {"round": 1, "only": "in the first"})
    run_until_idle(kernel, [QUEUE])
    TimeShift(kernel).advance(seconds=2)
    run_until_idle(kernel, [QUEUE])
    failed = kernel.get(workflow_id)
    assert failed.status is InstanceStatus.FAILED
    calls.clear()
    kernel.start_or_resume(order.plan, biz_key="test:1", input={"round": 2}, fencing_token=2)
    fresh = kernel.get(workflow_id)
    assert fresh.steps["a"] == failed.steps["a"]
    step = fresh.steps["b"]
    assert (step.status, step.attempt, step.failures) == (StepStatus.PENDING, 0, 0)
    assert (step.checkpoint, step.error, step.attempts, step.wait_count) == (None, None, (), 0)
    assert step.times.activity_ms == step.times.external_ms == 0
    assert step.seq > failed.steps["b"].seq, "a late command of the old round matches nothing"
    assert (fresh.error, fresh.finished_at, fresh.blocked_on) == (None, None, None)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "a1", "b": "b2", "c": "c2"}
    assert calls == [("b", {"round": 2}, 1, None), ("c", {"round": 2}, 1, None)]
    assert instance.retry_count == 1


def test_racing_creations_have_one_winner(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    results = _race(
        lambda n: kernel.start_or_resume(ORDER.plan, biz_key="raced", input={"from": n})
    )
    [winner] = [result for result in results if result.activated]
    assert all(result.accepted for result in results)
    assert {result.instance.input["from"] for result in results} == {winner.instance.input["from"]}
    assert len(kernel.list_instances()) == 1


@pytest.mark.parametrize("same_token", [True, False])
def test_racing_replays_have_one_winner(make_kernel: MakeKernel, same_token: bool) -> None:
    kernel, of = brought_to(make_kernel, "failed")
    results = _race(
        lambda n: kernel.start_or_resume(
            of.plan, biz_key="test:1", input={"from": n}, fencing_token=6 if same_token else 6 + n
        )
    )
    [winner] = [result for result in results if result.activated]
    instance = kernel.get(winner.workflow_id)
    assert instance.input == winner.instance.input
    assert instance.retry_count == 1
    if not same_token:
        assert {r.reason for r in results if not r.accepted} <= {"busy", "stale_round"}


def _race(call: Callable[[int], StartResult]) -> list[StartResult]:
    """Call from many threads at the same moment."""
    barrier, results = threading.Barrier(RACERS), []

    def run(n: int) -> None:
        barrier.wait(20)
        results.append(call(n))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == RACERS
    return results


@pytest.mark.parametrize("status", ["running", "waiting"])
def test_priority_is_raised_and_never_lowered(make_kernel: MakeKernel, status: str) -> None:
    kernel, of = brought_to(make_kernel, status)
    workflow_id = workflow_id_of("test:1")

    def registered(priority: Priority) -> tuple[int, int]:
        kernel.start_or_resume(
            of.plan, biz_key="test:1", input="x", fencing_token=5, priority=priority
        )
        instance = kernel.get(workflow_id)
        return int(instance.priority), instance.revision

    first, revision = registered(Priority.ASYNC)
    assert first == 1
    assert registered(Priority.RECOVERY) == (1, revision)
    assert registered(Priority.REALTIME) == (0, revision), "an order is no change of state"
    assert registered(Priority.RECOVERY) == (0, revision)


def test_a_raised_instance_overtakes_in_its_lane(make_kernel: MakeKernel) -> None:
    ran: list[str] = []
    order = definition("test.lanes", {"a": lambda ctx: ran.append(ctx.biz_key)})
    kernel = make_kernel(order, slots_per_child=1)
    for key in ("slow-1", "slow-2", "urgent"):
        kernel.start_or_resume(order.plan, biz_key=key, priority=Priority.RECOVERY)
    kernel.start_or_resume(order.plan, biz_key="urgent", priority=Priority.REALTIME)
    run_until_idle(kernel, [QUEUE])
    assert ran == ["urgent", "slow-1", "slow-2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"biz_key": ""}, "non-empty"),
        ({"biz_key": 5}, "non-empty"),
        ({"biz_key": "\ud800"}, "surrogate"),
        ({"biz_key": "x" * 600}, "limit is 512"),
        ({"fencing_token": 0}, "from 1"),
        ({"fencing_token": True}, "from 1"),
        ({"fencing_token": 2**63}, "from 1"),
        ({"fencing_token": "1"}, "from 1"),
        ({"priority": 4}, "no lane"),
        ({"priority": -1}, "no lane"),
        ({"priority": True}, "no lane"),
        ({"priority": "high"}, "no lane"),
        ({"input": {"a": float("nan")}}, r"input of test.round at \$\.a"),
        ({"input": object()}, "no JSON value"),
        ({"input": "x" * 70_000}, "limit is 65536"),
    ],
)
def test_a_call_that_cannot_be_kept_is_refused_before_any_write(
    make_kernel: MakeKernel, arguments: dict[str, Any], message: str
) -> None:
    kernel = make_kernel(ORDER, with_redis=False)
    with pytest.raises(InvalidValue, match=message) as refused:
        kernel.start_or_resume(ORDER.plan, **({"biz_key": "k"} | arguments))
    assert isinstance(refused.value, ValueTooLarge) == ("limit is" in message)
    assert kernel.list_instances() == []


@pytest.mark.parametrize("status", STATUSES)
def test_supersede_ends_what_may_end_so(make_kernel: MakeKernel, status: str) -> None:
    kernel, _ = brought_to(make_kernel, status)
    before = kernel.find(biz_key="test:1")
    assert before is not None
    changed = kernel.supersede(before.workflow_id, reason="a newer \ud800 generation")
    after = kernel.get(before.workflow_id)
    assert changed == (status in ("running", "waiting"))
    if changed:
        assert after.status is InstanceStatus.CANCELED
        assert after.error is not None
        assert (after.error.code, after.error.message) == (
            "superseded",
            "a newer \\ud800 generation",
        )
        assert (after.claim_token, after.waits, after.blocked_on) == (None, (), None)
        TimeShift(kernel).advance(seconds=4000)
        kernel.reconcile()
        assert run_until_idle(kernel, [QUEUE]) == 0
    else:
        assert after == before
    assert not kernel.supersede(before.workflow_id, reason="again")


def test_superseding_nothing_changes_nothing(kernel: Kernel) -> None:
    assert not kernel.supersede("wf_none", reason="x")


def test_a_stale_worker_writes_nothing_into_a_finished_or_newer_round(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    kernel = make_kernel(ORDER)
    workflow_id = start(kernel, ORDER, "fail")
    stale = dead_worker.begins(kernel, workflow_id)
    store = dead_worker.store(kernel)
    late = _completing(stale)
    run_until_idle(kernel, [QUEUE])
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    finished = kernel.get(workflow_id)
    assert finished.status is InstanceStatus.FAILED
    assert not store.commit(late)
    assert kernel.get(workflow_id) == finished
    kernel.start_or_resume(ORDER.plan, biz_key="test:1", input="ok", fencing_token=2)
    replayed = kernel.get(workflow_id)
    assert not store.commit(late)
    assert kernel.get(workflow_id) == replayed
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "ok"}


def _completing(stale: WorkflowInstance) -> Commit:
    return home_alone(stale, "a", homecoming.completed(stale, "a", "late")).commit
