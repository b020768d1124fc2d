"""Waiting for a permit: no attempt, no error, in line, handed on as soon as a place is free."""

import threading
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    Definition,
    InstanceStatus,
    Kernel,
    NonRetryable,
    OnFailed,
    Priority,
    Reason,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
    WaitForSignal,
    WorkflowCanceled,
    WorkflowInstance,
    Yield,
)
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start
from tests.kit.waiting import eventually

R = "psp"


def calls(**steps: Any) -> Definition:
    """A workflow whose steps name the resource."""
    return definition("test.calls", {n: Step(a, traffic_resource=R) for n, a in steps.items()})


class Elsewhere:
    """Permits somebody else holds."""

    def __init__(self, kernel: Kernel) -> None:
        self._store = kernel._parts.permits.store
        self._kernel = kernel

    def takes(self, *names: str, resource: str = R) -> None:
        owners = [PermitOwner(name, "s", name) for name in names]
        state = self._store.acquire(resource, owners, lease_ms=3_600_000)
        assert all(state.holds(owner) for owner in owners)

    def gives(self, *names: str, resource: str = R) -> None:
        """Give back as a worker does: and hand on."""
        state = self._store.release(resource, [PermitOwner(name, "s", name) for name in names])
        self._kernel._parts.permits.handing_on.hand_on(resource, state)


def full(kernel: Kernel, limit: int = 1, resource: str = R) -> Elsewhere:
    """Return who holds every permit of the resource."""
    kernel.capacity.set_limit(resource, max_concurrency=limit)
    elsewhere = Elsewhere(kernel)
    elsewhere.takes(*(f"other-{n}" for n in range(limit)), resource=resource)
    return elsewhere


def test_a_step_without_a_permit_waits_and_runs_once_it_is_handed_on(
    make_kernel: MakeKernel,
) -> None:
    order = calls(a=lambda ctx: {"attempt": ctx.attempt})
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    assert kernel.drain([QUEUE]) == 1
    waiting = kernel.get(workflow_id)
    step = waiting.steps["a"]
    assert (waiting.status, waiting.claim_token) == (InstanceStatus.RUNNING, None)
    assert (step.status, step.attempt, step.error) == (StepStatus.PENDING, 0, None)
    blocked = waiting.blocked_on
    assert blocked is not None
    assert (blocked.reason, blocked.resources, blocked.step) == (Reason.PERMIT, (R,), "a")
    assert blocked.until is not None
    assert kernel.drain([QUEUE]) == 0
    elsewhere.gives("other-0")
    assert kernel.drain([QUEUE]) == 1
    done = kernel.get(workflow_id)
    assert (done.status, done.output["a"]) == (InstanceStatus.COMPLETED, {"attempt": 1})
    assert kernel.capacity.status(R).used == 0


def test_a_blocked_resource_delays_nobody_who_does_not_need_it(make_kernel: MakeKernel) -> None:
    order = calls(a=lambda _: None)
    free = definition("test.free", {"a": lambda _: None})
    kernel = make_kernel(order, free)
    full(kernel)
    blocked = start(kernel, order)
    other = start(kernel, free, biz_key="test:free")
    kernel.drain([QUEUE])
    assert kernel.get(other).status is InstanceStatus.COMPLETED
    assert kernel.get(blocked).status is InstanceStatus.RUNNING


def test_the_time_in_line_is_traffic_of_the_step_and_of_its_attempt(
    make_kernel: MakeKernel,
) -> None:
    order = calls(a=lambda _: None)
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    TimeShift(kernel).advance(seconds=40)
    kernel.drain([QUEUE])  # looks by itself, and is refused again
    TimeShift(kernel).advance(seconds=10)
    elsewhere.gives("other-0")
    TimeShift(kernel).advance(seconds=3)
    kernel.drain([QUEUE])
    step = kernel.get(workflow_id).steps["a"]
    assert 49_000 <= step.times.traffic_ms <= 52_000
    assert 3_000 <= step.times.scheduling_ms <= 6_000
    assert step.attempts[0].traffic_ms == step.times.traffic_ms
    assert step.attempts[0].scheduling_ms == step.times.scheduling_ms


def test_the_place_in_line_is_kept_over_refusals(make_kernel: MakeKernel) -> None:
    order = calls(a=lambda _: None)
    kernel = make_kernel(order)
    full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    since = kernel.get(workflow_id).blocked_on
    TimeShift(kernel).advance(seconds=31)
    assert kernel.drain([QUEUE]) == 1
    again = kernel.get(workflow_id).blocked_on
    assert since is not None
    assert again is not None
    assert again.since == since.since
    assert again.until != since.until


def test_the_line_is_in_order_best_lane_first(make_kernel: MakeKernel) -> None:
    ran: list[str] = []
    order = calls(a=lambda ctx: ran.append(ctx.biz_key))
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    for n in range(5):
        start(kernel, order, biz_key=f"async:{n}")
        kernel.drain([QUEUE])
    kernel.start_or_resume(order.plan, biz_key="now", priority=Priority.REALTIME)
    kernel.drain([QUEUE])
    shown = kernel.capacity.status(R)
    assert [(w.priority, w.position) for w in shown.waiters][:2] == [(0, 1), (1, 2)]
    assert shown.waiting == 6
    elsewhere.gives("other-0")
    newcomer = start(kernel, order, biz_key="newcomer")
    kernel.drain([QUEUE])
    assert ran == ["now", *(f"async:{n}" for n in range(5)), "newcomer"]
    assert kernel.get(newcomer).status is InstanceStatus.COMPLETED


def test_several_free_places_are_handed_out_in_one_go_when_a_limit_is_raised(
    make_kernel: MakeKernel,
) -> None:
    order = calls(a=lambda _: None)
    kernel = make_kernel(order)
    full(kernel)
    ids = [start(kernel, order, biz_key=f"t:{n}") for n in range(6)]
    kernel.drain([QUEUE])
    status = kernel.capacity.set_limit(R, max_concurrency=5)
    assert status.reserved == 4
    kernel.capacity.set_limit(R, max_concurrency=0)
    kernel.drain([QUEUE])
    assert {kernel.get(i).status for i in ids} == {InstanceStatus.COMPLETED}


def test_a_paused_resource_starts_nothing_says_so_and_goes_on_at_once(
    make_kernel: MakeKernel,
) -> None:
    order = calls(a=lambda _: None)
    kernel = make_kernel(order)
    kernel.capacity.pause(R, reason="maintenance", by="ann")
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    blocked = kernel.get(workflow_id).blocked_on
    assert blocked is not None
    assert blocked.reason is Reason.PAUSED
    assert "paused" in kernel.why(workflow_id).sentence
    kernel.capacity.resume(R)
    assert kernel.drain([QUEUE]) == 1
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED


def test_a_cooldown_from_inside_an_activity_holds_the_next_and_ends_by_itself(
    make_kernel: MakeKernel,
) -> None:
    def told_to_wait(ctx: ActivityContext) -> None:
        if ctx.biz_key == "first":
            ctx.capacity.cooldown(R, 30)

    order = calls(a=told_to_wait)
    kernel = make_kernel(order)
    first, second = start(kernel, order, biz_key="first"), start(kernel, order, biz_key="second")
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(first).status is InstanceStatus.COMPLETED
    assert kernel.get(second).status is InstanceStatus.RUNNING
    status = kernel.capacity.status(R)
    assert status.next_start_at == status.cooldown_until
    assert status.history[-1].by == f"{first}/a"
    TimeShift(kernel).advance(seconds=31)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(second).status is InstanceStatus.COMPLETED


def failing(_: ActivityContext) -> None:
    raise RuntimeError("no")


def fatal(_: ActivityContext) -> None:
    raise NonRetryable("no")


def gone(_: ActivityContext) -> None:
    raise WorkflowCanceled("gone")


@pytest.mark.parametrize(
    "way_out",
    [
        lambda _: {"fine": True},
        failing,
        fatal,
        gone,
        lambda _: Sleep(60),
        lambda _: WaitForSignal("s", "k"),
        lambda ctx: None if ctx.checkpoint else Yield(checkpoint=1),
        lambda _: float("nan"),
        lambda ctx: ctx.cancelled.wait(5),
    ],
    ids=[
        "completed",
        "retry",
        "failed",
        "canceled",
        "sleep",
        "signal",
        "yield",
        "unstorable",
        "timeout",
    ],
)
def test_every_way_out_of_a_step_gives_its_permit_back(
    make_kernel: MakeKernel, way_out: Any
) -> None:
    step = Step(
        way_out, traffic_resource=R, timeout=0.2, retry=RetryPolicy(max_retry=1, initial=60)
    )
    order = definition("test.out", {"a": step, "b": Step(lambda _: None, on_failed=OnFailed.SKIP)})
    kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_concurrency=1)
    start(kernel, order)
    kernel.drain([QUEUE])
    status = kernel.capacity.status(R)
    assert (status.used, status.granted >= 1) == (0, True)


def test_the_next_step_waits_in_the_write_that_completes_the_last(
    make_kernel: MakeKernel,
) -> None:
    order = definition(
        "test.fused", {"a": lambda _: None, "b": Step(lambda _: None, traffic_resource=R)}
    )
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    waiting = kernel.get(workflow_id)
    assert waiting.steps["a"].status is StepStatus.COMPLETED
    assert waiting.steps["b"].seq == 1
    assert waiting.revision == 3, "create, claim and begin, complete and defer"
    elsewhere.gives("other-0")
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED


def test_a_step_passes_its_permit_on_to_the_next_one_of_its_own(make_kernel: MakeKernel) -> None:
    order = calls(a=lambda _: None, b=lambda _: None, c=lambda _: None)
    kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_concurrency=1)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE], max_claims=1)
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    status = kernel.capacity.status(R)
    assert (status.used, status.granted, status.refused) == (0, 3, 0)


def test_in_a_wave_those_without_a_permit_stay_out_and_their_siblings_run(
    make_kernel: MakeKernel,
) -> None:
    steps = {n: Step(lambda _: None, traffic_resource=R if n == "left" else None) for n in NAMES}
    order = definition(
        "test.wave", steps, depends_on={"left": [], "right": [], "join": ["left", "right"]}
    )
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    waiting = kernel.get(workflow_id)
    assert waiting.steps["right"].status is StepStatus.COMPLETED
    assert waiting.steps["left"].attempt == 0
    assert waiting.blocked_on is not None
    assert waiting.blocked_on.step == "left"
    elsewhere.gives("other-0")
    assert ended(kernel, workflow_id).status is InstanceStatus.COMPLETED


NAMES = ("left", "right", "join")


def test_a_permit_is_waited_for_beside_a_timer(make_kernel: MakeKernel) -> None:
    def nap(ctx: ActivityContext) -> Any:
        return None if ctx.resume else Sleep(5)

    order = definition(
        "test.beside",
        {"nap": nap, "call": Step(lambda _: None, traffic_resource=R)},
        depends_on={"nap": [], "call": []},
    )
    kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.capacity.status(R).waiting == 1
    TimeShift(kernel).advance(seconds=6)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).steps["nap"].status is StepStatus.COMPLETED
    assert kernel.capacity.status(R).waiting == 1
    elsewhere.gives("other-0")
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED


def test_all_resources_of_a_step_or_none(make_kernel: MakeKernel) -> None:
    order = definition("test.both", {"a": Step(lambda _: None, traffic_resource=["x", "y", "x"])})
    kernel = make_kernel(order)
    elsewhere = full(kernel, resource="y")
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.capacity.status("x").used == 0
    blocked = kernel.get(workflow_id).blocked_on
    assert blocked is not None
    assert (blocked.resources, blocked.needs) == (("y",), ("x", "y"))
    elsewhere.gives("other-0", resource="y")
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert [kernel.capacity.status(n).used for n in ("x", "y")] == [0, 0]


@pytest.mark.parametrize("with_redis", [True, False])
def test_workflows_that_need_two_resources_crosswise_all_end(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    inside = threading.Semaphore(1)

    def alone(_: ActivityContext) -> None:
        assert inside.acquire(blocking=False), "two calls on resources of one permit"
        inside.release()

    steps = {
        "one": Step(alone, traffic_resource=["x", "y"]),
        "two": Step(alone, traffic_resource=["y", "x"]),
    }
    order = definition("test.cross", steps)
    kernel = make_kernel(order, with_redis=with_redis)
    others = make_kernel(order, with_redis=with_redis)
    for name in ("x", "y"):
        kernel.capacity.set_limit(name, max_concurrency=1)
    ids = [start(kernel, order, biz_key=f"t:{n}") for n in range(8)]
    threads = [threading.Thread(target=_serve, args=(k, ids)) for k in (kernel, others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {kernel.get(i).status for i in ids} == {InstanceStatus.COMPLETED}
    assert [kernel.capacity.status(n).used for n in ("x", "y")] == [0, 0]


def _serve(kernel: Kernel, ids: list[str]) -> None:
    def is_over() -> bool:
        kernel.tick()
        kernel._parts.drain.poll([QUEUE])
        return all(kernel.get(i).status.is_terminal for i in ids)

    eventually(is_over, timeout=50)


def test_the_workflows_own_permits_are_held_for_its_claim_and_waiting_touches_no_step(
    make_kernel: MakeKernel,
) -> None:
    used: list[int] = []
    kernel: Kernel

    def look(_: ActivityContext) -> None:
        used.append(kernel.capacity.status("tenant_work:t1").used)

    order = definition(
        "test.tenant",
        {"a": look, "b": look},
        workflow_resources=lambda value: [f"tenant_work:{value['tenant']}"],
        success_finalizer=look,
    )
    kernel = make_kernel(order)
    elsewhere = full(kernel, resource="tenant_work:t1")
    workflow_id = start(kernel, order, {"tenant": "t1"})
    kernel.drain([QUEUE])
    waiting = kernel.get(workflow_id)
    assert waiting.steps["a"].seq == 0
    assert waiting.blocked_on is not None
    assert (waiting.blocked_on.step, waiting.blocked_on.resources) == (None, ("tenant_work:t1",))
    since = waiting.blocked_on.since
    TimeShift(kernel).advance(seconds=31)
    kernel.drain([QUEUE])
    again = kernel.get(workflow_id).blocked_on
    assert again is not None
    assert again.since == since
    elsewhere.gives("other-0", resource="tenant_work:t1")
    kernel.drain([QUEUE])
    done = kernel.get(workflow_id)
    assert done.status is InstanceStatus.COMPLETED
    assert used == [1, 1, 0], "the finalizer needs no permit"
    assert done.queued_since is None
    assert done.steps["a"].times.traffic_ms >= 30_000
    assert kernel.capacity.status("tenant_work:t1").used == 0


@pytest.mark.parametrize("bad", ["no spaces please", "", 7, ["fine", "x" * 201], {"a": 1}, "é"])
def test_a_bad_name_from_a_callable_fails_the_step_and_not_the_worker(
    make_kernel: MakeKernel, bad: Any
) -> None:
    step = Step(lambda _: None, traffic_resource=lambda _: bad, retry=RetryPolicy(max_retry=3))
    order = definition("test.bad", {"a": step})
    tenant = definition("test.bad_tenant", {"a": lambda _: None}, workflow_resources=lambda _: bad)
    kernel = make_kernel(order, tenant)
    ids = [start(kernel, order), start(kernel, tenant, biz_key="test:2")]
    kernel.drain([QUEUE])
    for each in ids:
        instance = kernel.get(each)
        assert instance.status is InstanceStatus.FAILED
        assert instance.error is not None
        assert instance.error.code == "invalid_value"
        assert instance.steps["a"].attempt == 1


@pytest.fixture
def interrupted(make_kernel: MakeKernel, dead_worker: Any) -> tuple[Kernel, Elsewhere, str]:
    order = calls(a=lambda _: None)
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    dead_worker.begins(kernel, workflow_id)
    elsewhere = full(kernel)
    kernel.drain([QUEUE])
    return kernel, elsewhere, workflow_id


def test_an_interrupted_step_that_waits_counts_its_interruption_once(
    interrupted: tuple[Kernel, Elsewhere, str],
) -> None:
    kernel, elsewhere, workflow_id = interrupted
    step = kernel.get(workflow_id).steps["a"]
    assert (step.status, step.attempt, step.recoveries) == (StepStatus.PENDING, 1, 1)
    assert [a.outcome for a in step.attempts] == ["lost"]
    elsewhere.gives("other-0")
    kernel.drain([QUEUE])
    done: WorkflowInstance = kernel.get(workflow_id)
    assert done.status is InstanceStatus.COMPLETED
    assert (done.steps["a"].attempt, done.steps["a"].recoveries) == (2, 0)


def test_an_interrupted_step_of_a_workflow_that_waits_counts_its_interruption(
    make_kernel: MakeKernel, dead_worker: Any
) -> None:
    order = definition("test.tenant", {"a": lambda _: None}, workflow_resources=lambda _: R)
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    dead_worker.begins(kernel, workflow_id)
    full(kernel)
    kernel.drain([QUEUE])
    step = kernel.get(workflow_id).steps["a"]
    assert (step.status, step.attempt, step.recoveries) == (StepStatus.PENDING, 1, 1)


def test_whoever_is_claimed_stands_in_no_line(make_kernel: MakeKernel) -> None:
    seen: list[Any] = []
    order = calls(a=lambda ctx: seen.append(kernel.get(ctx.workflow_id).blocked_on))
    kernel: Kernel = make_kernel(order)
    elsewhere = full(kernel)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).blocked_on is not None
    elsewhere.gives("other-0")
    kernel.drain([QUEUE])
    assert seen == [None]
