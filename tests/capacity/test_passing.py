"""A permit passed to the next in line, with the slot that held it: no lane, no bell in between."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import ActivityContext, InstanceStatus, Kernel, Priority, Step, StepStatus, limits
from kernel.engine.handing_on import HandingOn
from kernel.errors import StoreUnavailable
from kernel.protocol.resources import Held, PermitOwner, ResourceState
from kernel.store import Leaving, PermitGroups
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

R = "psp"


class Line:
    """One workflow that holds the only permit, while others come and are put off.

    `meanwhile(kernel)` runs when they stand in line and the permit is still held.
    """

    def __init__(
        self,
        make_kernel: MakeKernel,
        *names: str,
        meanwhile: Callable[[Kernel], object] = lambda _: None,
        slots: int = 1,
    ) -> None:
        self.ran: list[str] = []
        self.resources: list[str] = [R]
        self._names, self._meanwhile = names, meanwhile
        self.put_off: dict[str, int] = {}
        #: When permit and claim of each call would end.
        self.ends: dict[str, tuple[datetime, datetime]] = {}
        self.order = definition(
            "test.pass", {"a": Step(self._call, traffic_resource=lambda _: list(self.resources))}
        )
        self.free = definition("test.free", {"a": lambda ctx: self.ran.append(ctx.biz_key)})
        self.kernel = make_kernel(self.order, self.free, slots_per_child=slots)
        self.kernel.capacity.set_limit(R, max_concurrency=1)
        self.ids = {"first": start(self.kernel, self.order, biz_key="first")}

    def _call(self, ctx: ActivityContext) -> None:
        self.ran.append(ctx.biz_key)
        if ctx.biz_key != "first":
            [holder] = self.kernel._parts.permits.store.read(R).holders
            claim_ends = self.kernel.get(ctx.workflow_id).claimable_time
            self.ends[ctx.biz_key] = holder.expires, claim_ends
            return
        for name in self._names:
            self.ids[name] = start(self.kernel, self.order, biz_key=name)
            assert self.kernel.run_once([QUEUE])
            self.put_off[name] = self.kernel.get(self.ids[name]).revision
        self._meanwhile(self.kernel)

    def writes_since_put_off(self, name: str) -> int:
        """Return how often an instance changed since it was put off."""
        return self.kernel.get(self.ids[name]).revision - self.put_off[name]

    def is_over(self) -> bool:
        """Tell whether all are completed at their first attempt, and nothing is held or kept."""
        instances = [self.kernel.get(each) for each in self.ids.values()]
        status = self.kernel.capacity.status(R)
        assert {instance.steps["a"].attempt for instance in instances} == {1}
        return (
            {instance.status for instance in instances} == {InstanceStatus.COMPLETED}
            and (status.used, status.reserved, status.waiting) == (0, 0, 0)
            and status.granted == len(instances)
        )


#: What a passed permit costs the instance that gets it: claim and begin in one write, and its end.
PASSED = 2
#: What it costs one that is handed on to: claim, begin, end.
HANDED_ON = 3


@pytest.mark.parametrize("slots", [1, 3])
def test_the_next_in_line_is_claimed_and_begun_in_one_write_and_leaves_no_hint(
    make_kernel: MakeKernel, slots: int
) -> None:
    line = Line(make_kernel, "second", "third", slots=slots)
    assert line.kernel.drain([QUEUE]) == 3
    assert line.ran == ["first", "second", "third"]
    assert [line.writes_since_put_off(name) for name in line.put_off] == [PASSED, PASSED]
    assert line.is_over()
    depth = line.kernel.hints.hints.depth(QUEUE)
    assert sum(lane.total for lane in depth.values()) == 0, "a claimed instance stands in a lane"


def test_its_wait_is_traffic_up_to_the_moment_it_was_passed_on(make_kernel: MakeKernel) -> None:
    line = Line(
        make_kernel, "second", meanwhile=lambda kernel: TimeShift(kernel).advance(seconds=7)
    )
    line.kernel.drain([QUEUE])
    step = line.kernel.get(line.ids["second"]).steps["a"]
    assert 7_000 <= step.times.traffic_ms < 12_000
    assert step.times.scheduling_ms < 5_000
    assert step.attempts[0].traffic_ms == step.times.traffic_ms
    assert (step.blocked_on, step.not_before) == (None, None)


@pytest.mark.parametrize(("lane", "at_ms"), [(Priority.REALTIME, None), (Priority.ASYNC, 1)])
def test_nobody_in_the_lanes_is_overtaken(
    make_kernel: MakeKernel, lane: Priority, at_ms: int | None
) -> None:
    def other_comes(kernel: Kernel) -> None:
        begun = kernel.start_or_resume(line.free.plan, biz_key="other", priority=lane)
        if at_ms is not None:  # has waited for longer
            kernel.hints.hints.push(QUEUE, begun.workflow_id, priority=lane, at_ms=at_ms)

    line = Line(make_kernel, "second", "third", meanwhile=other_comes)
    line.kernel.drain([QUEUE])
    assert line.ran[:2] == ["first", "other"]
    assert sorted(line.ran[2:]) == ["second", "third"]
    assert line.writes_since_put_off("second") == HANDED_ON
    assert line.is_over()


def test_a_drain_that_has_used_its_budget_passes_to_nobody(make_kernel: MakeKernel) -> None:
    line = Line(make_kernel, "second")
    assert line.kernel.drain([QUEUE], max_claims=1) == 1
    assert line.ran == ["first"]
    assert line.kernel.capacity.status(R).reserved == 1
    assert line.kernel.drain([QUEUE]) == 1
    assert line.writes_since_put_off("second") == HANDED_ON
    assert line.is_over()


def test_a_process_that_was_asked_to_stop_passes_to_nobody(make_kernel: MakeKernel) -> None:
    line = Line(make_kernel, "second", meanwhile=lambda kernel: kernel._parts.machine.stop.set())
    assert line.kernel.drain([QUEUE]) == 1
    assert line.kernel.get(line.ids["second"]).claim_token is None
    assert line.kernel.capacity.status(R).used == 0


def slowed(line: Line, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let time pass between a grant and the claim it is for."""
    passes = HandingOn.pass_on

    def slowly(
        self: HandingOn, resource: str, owner: PermitOwner, offered: tuple[PermitOwner, ...]
    ) -> Held | None:
        given = passes(self, resource, owner, offered)
        TimeShift(line.kernel).advance(seconds=seconds)
        return given

    monkeypatch.setattr(HandingOn, "pass_on", slowly)


def test_a_claim_that_comes_too_late_is_not_taken_and_its_permit_is_back(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(make_kernel, "second")
    slowed(line, monkeypatch, limits.PASSING_SECONDS + 0.1)
    line.kernel.drain([QUEUE])
    assert line.writes_since_put_off("second") == HANDED_ON
    assert line.is_over()


def test_a_permit_outlives_a_claim_that_is_taken_late(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(make_kernel, "second")
    slowed(line, monkeypatch, limits.PASSING_SECONDS / 2)
    line.kernel.drain([QUEUE])
    assert line.writes_since_put_off("second") == PASSED
    permit_ends, claim_ends = line.ends["second"]
    assert permit_ends > claim_ends


def test_whose_step_names_more_by_now_is_not_passed_to(make_kernel: MakeKernel) -> None:
    def another_is_named(kernel: Kernel) -> None:
        kernel.capacity.pause("other")
        line.resources.append("other")

    line = Line(make_kernel, "second", meanwhile=another_is_named)
    line.kernel.drain([QUEUE])
    assert line.ran == ["first"]
    second = line.kernel.get(line.ids["second"])
    assert (second.claim_token, second.steps["a"].status) == (None, StepStatus.PENDING)
    assert line.kernel.capacity.status(R).used == 0


def test_what_may_have_been_granted_by_a_lost_answer_is_given_back(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = PermitGroups.release
    lost: list[Leaving] = []

    def loses(self: PermitGroups, resource: str, leaving: Leaving) -> ResourceState:
        state = release(self, resource, leaving)
        if leaving.then_pass and not lost:
            lost.append(leaving)
            raise StoreUnavailable("no answer")
        return state

    monkeypatch.setattr(PermitGroups, "release", loses)
    line = Line(make_kernel, "second", "third")
    line.kernel.drain([QUEUE])
    assert lost
    assert line.ran == ["first", "second", "third"]
    status = line.kernel.capacity.status(R)
    assert (status.used, status.reserved, status.waiting) == (0, 0, 0)


def test_a_waiter_this_version_cannot_read_takes_no_permit_along(
    make_kernel: MakeKernel, mongo_client: MongoClient[Any], mongo_db_name: str
) -> None:
    def spoil(_: Kernel) -> None:
        mongo_client[mongo_db_name]["workflow_instances"].update_one(
            {"workflow_id": line.ids["one"]}, {"$set": {"waits": 3}}
        )

    line = Line(make_kernel, "one", meanwhile=spoil)
    line.kernel.drain([QUEUE])
    assert line.ran == ["first"]
    assert line.kernel._parts.permits.store.read(R).holders == ()
    assert line.kernel.get(line.ids["first"]).status is InstanceStatus.COMPLETED


def test_one_whose_document_may_not_be_changed_stops_neither_its_predecessor_nor_the_next(
    make_kernel: MakeKernel, mongo_client: MongoClient[Any], mongo_db_name: str
) -> None:
    database = mongo_client[mongo_db_name]

    def refuse(_: Kernel) -> None:
        rule = {"$or": [{"biz_key": {"$ne": "second"}}, {"claim_token": {"$exists": False}}]}
        database.command("collMod", "workflow_instances", validator=rule)

    line = Line(make_kernel, "second", "third", meanwhile=refuse)
    line.kernel.drain([QUEUE])
    for _ in range(30):
        if "third" in line.ran:
            break
        TimeShift(line.kernel).advance(seconds=1)
        line.kernel.tick()
        line.kernel.drain([QUEUE])
    assert line.ran == ["first", "third"]
