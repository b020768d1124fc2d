"""Who a permit may not be passed to, and what stays of one whose step does not come to run."""

from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    Priority,
    RetryPolicy,
    Step,
    StepStatus,
    limits,
)
from kernel.engine.claims import HeldClaim
from kernel.engine.passing import Passing
from kernel.protocol import owning
from kernel.store import PermitGroups, Waiters
from kernel.testing import TimeShift, run_until_idle
from tests.capacity.test_passing import HANDED_ON, Line, R
from tests.capacity.test_waiting import full
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start

RETRIES = RetryPolicy(max_retry=1, backoff="fixed", initial=20)


def test_one_that_others_have_to_run_is_not_overtaken_by_the_next(make_kernel: MakeKernel) -> None:
    ran: list[str] = []
    step = Step(lambda ctx: ran.append(ctx.biz_key), traffic_resource=R)
    foreign = definition("test.foreign", {"a": step})
    elsewhere = make_kernel(foreign)

    def stands_before_it(_: Kernel) -> None:
        elsewhere.start_or_resume(foreign.plan, biz_key="other", priority=Priority.REALTIME)
        assert elsewhere.run_once([QUEUE])

    line = Line(make_kernel, "second", meanwhile=stands_before_it)
    assert line.kernel.drain([QUEUE]) == 1
    assert line.ran == ["first"]
    elsewhere.reconcile()  # the first kernel has put it off: it does not know it
    elsewhere.drain([QUEUE])
    assert ran == ["other"]


def test_what_is_due_in_another_queue_has_its_turn(make_kernel: MakeKernel) -> None:
    beside = definition("test.beside", {"a": lambda _: line.ran.append("beside")}, queue="beside")

    def comes(kernel: Kernel) -> None:
        kernel.register(beside)
        start(kernel, beside, biz_key="beside")

    line = Line(make_kernel, "second", meanwhile=comes)
    line.kernel.drain([QUEUE, "beside"])
    assert line.ran == ["first", "beside", "second"]
    assert line.writes_since_put_off("second") == HANDED_ON


def test_a_passed_claim_that_meets_a_stop_keeps_its_place_and_its_attempt(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(make_kernel, "second")
    claims, since = Passing._claim, []

    def stops(self: Passing, resource: str, given: Any, waiter: Any) -> HeldClaim | None:
        held = claims(self, resource, given, waiter)
        since.append(waiter.since)
        line.kernel._parts.machine.stop.set()
        return held

    monkeypatch.setattr(Passing, "_claim", stops)
    line.kernel.drain([QUEUE])
    second = line.kernel.get(line.ids["second"])
    step = second.steps["a"]
    assert (second.claim_token, step.status, step.attempt) == (None, StepStatus.PENDING, 0)
    assert [step.place] == since
    assert line.kernel.capacity.status(R).used == 0


@pytest.mark.parametrize("before", [{}, {"before": lambda _: None}])
def test_a_permit_of_a_step_that_did_not_begin_leaves_no_start(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any]
) -> None:
    steps = before | {"a": Step(lambda _: None, traffic_resource=R)}
    order = definition("test.obsolete", steps)
    kernel: Kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_starts_per_second=0.1)
    asked: list[str] = []
    acquire = PermitGroups.acquire

    def then_it_is_obsolete(self: PermitGroups, resource: str, owner: Any, **told: Any) -> Any:
        state = acquire(self, resource, owner, **told)
        asked.append(owner.workflow_id)
        assert kernel.supersede(owner.workflow_id, reason="obsolete")
        return state

    monkeypatch.setattr(PermitGroups, "acquire", then_it_is_obsolete)
    start(kernel, order)
    kernel.drain([QUEUE])
    monkeypatch.undo()
    assert len(asked) == 1
    second = start(kernel, order, biz_key="second")
    kernel.drain([QUEUE])
    assert kernel.get(second).status is InstanceStatus.COMPLETED, "it need not wait ten seconds"


def test_a_place_that_came_free_before_the_deferral_was_stored_is_not_waited_for(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = definition("test.race", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel: Kernel = make_kernel(order)
    elsewhere = full(kernel, resource=R)
    acquire = PermitGroups.acquire

    def then_it_is_free(self: PermitGroups, resource: str, owner: Any, **told: Any) -> Any:
        state = acquire(self, resource, owner, **told)
        if not state.holds(owner):
            elsewhere.gives("other-0")
        return state

    monkeypatch.setattr(PermitGroups, "acquire", then_it_is_free)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED


def fails_once(ctx: ActivityContext) -> None:
    if ctx.attempt == 1:
        raise OSError("once")


def test_one_whose_holder_died_since_it_was_read_is_not_passed_to(
    make_kernel: MakeKernel, dead_worker: DeadWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passed to, it would not be suspected of that death, and run beside others."""
    order = definition(
        "test.suspect",
        {"a": Step(lambda _: None, traffic_resource=R), "b": Step(fails_once, retry=RETRIES)},
        depends_on={"a": [], "b": []},
    )
    second: list[str] = []

    def comes(kernel: Kernel) -> None:
        kernel.register(order)
        second.append(start(kernel, order, biz_key="second"))
        assert kernel.run_once([QUEUE])

    line = Line(make_kernel, meanwhile=comes)
    claims, passed = Passing._claim, []

    def too_late(self: Passing, resource: str, given: Any, waiter: Any) -> HeldClaim | None:
        TimeShift(line.kernel).advance(seconds=21)  # the delay of "b" is over
        held = dead_worker.begins(line.kernel, waiter.workflow_id, lease_over=False)
        assert held.steps["b"].status is StepStatus.RUNNING
        assert dead_worker.store(line.kernel).commit(owning.free_dead(held, "b"))
        passed.append(claims(self, resource, given, waiter))
        return passed[-1]

    monkeypatch.setattr(limits, "PASSING_SECONDS", 600)
    monkeypatch.setattr(Passing, "_claim", too_late)
    line.kernel.drain([QUEUE])
    assert passed == [None]
    monkeypatch.undo()
    run_until_idle(line.kernel, [QUEUE])
    assert line.kernel.get(second[0]).status is InstanceStatus.COMPLETED


def test_a_slow_hand_cuts_no_delay_of_one_that_has_run_since(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def calls(ctx: ActivityContext) -> None:
        attempts.append(ctx.attempt)
        fails_once(ctx)

    order = definition("test.slow", {"a": Step(calls, traffic_resource=R, retry=RETRIES)})
    kernel: Kernel = make_kernel(order)
    polls = make_kernel(order, with_redis=False)
    elsewhere = full(kernel, resource=R)
    workflow_id = start(kernel, order)
    assert kernel.run_once([QUEUE])
    hand_on = Waiters.hand_on

    def twice(self: Waiters, commits: Any) -> None:
        monkeypatch.undo()
        hand_on(self, commits)  # another process, which has chosen the same
        assert polls.run_once([QUEUE])
        delayed.append(kernel.get(workflow_id).claimable_time)
        hand_on(self, commits)

    delayed: list[object] = []
    monkeypatch.setattr(Waiters, "hand_on", twice)
    elsewhere.gives("other-0")
    assert attempts == [1]
    assert delayed == [kernel.get(workflow_id).claimable_time]
