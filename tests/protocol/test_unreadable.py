"""One instance this version cannot read: it waits for one that can, and everybody else goes on."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from pymongo.collection import Collection

from kernel import InstanceStatus, Kernel, Reason, Sleep, Unreadable, WaitForSignal
from kernel.errors import StoreUnavailable
from kernel.protocol import beginning
from kernel.protocol.commit import Commit
from kernel.store import InstanceStore
from kernel.store.group_commits import commit_group
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start

#: What a later version might store, and this one does not know.
NEWER = {"waits.0.kind": "dream"}
READABLE = {"waits.0.kind": "signal"}


class Waiting:
    """Six instances that wait; the first and the fourth cannot be read."""

    def __init__(self, kernel: Kernel, of: Any, instances: Collection[Any], ran: list[str]) -> None:
        self.kernel, self.of, self.ran = kernel, of, ran
        self._instances = instances
        self.ids = [start(kernel, of, biz_key=f"k{n}") for n in range(6)]
        kernel.drain([QUEUE])
        assert {kernel.get(each).status for each in self.ids} == {InstanceStatus.WAITING}
        ran.clear()
        self.unreadable = [self.ids[0], self.ids[3]]
        self.set(NEWER)

    def set(self, change: dict[str, Any]) -> None:
        """Write by hand into those that cannot be read."""
        found = {"workflow_id": {"$in": self.unreadable}}
        self._instances.update_many(found, {"$set": change})


MakeWaiting = Callable[..., Waiting]


@pytest.fixture
def make(make_kernel: MakeKernel, instances: Collection[Any]) -> MakeWaiting:
    def waiting(first: object, *, with_redis: bool = False) -> Waiting:
        ran: list[str] = []

        def step(ctx: Any) -> object:
            ran.append(ctx.biz_key)
            return first if ctx.resume is None else None

        of = definition("test.unreadable", {"a": step})
        return Waiting(make_kernel(of, with_redis=with_redis), of, instances, ran)

    return waiting


@pytest.mark.parametrize("by", ["reconcile", "tick"])
@pytest.mark.parametrize("with_redis", [True, False])
def test_the_others_are_woken_in_time(make: MakeWaiting, by: str, with_redis: bool) -> None:
    waiting = make(Sleep(60), with_redis=with_redis)
    TimeShift(waiting.kernel).advance(seconds=61)
    getattr(waiting.kernel, by)()
    waiting.kernel.drain([QUEUE])
    assert sorted(waiting.ran) == ["k1", "k2", "k4", "k5"]


def test_a_page_of_due_waits_is_filled_past_those_that_cannot_be_read(make: MakeWaiting) -> None:
    waiting = make(Sleep(60))
    TimeShift(waiting.kernel).advance(seconds=61)
    due = waiting.kernel._parts.scan.due_waiting
    assert [len(due(limit=limit)) for limit in (1, 3, 4, 5)] == [1, 3, 4, 4]
    assert [one.instance.biz_key for one in due(limit=1)] == ["k1"]


def test_a_list_for_people_loses_no_page_and_the_one_asked_for_is_told(
    make: MakeWaiting, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = (waiting := make(Sleep(60))).kernel
    seen: list[str] = []
    with caplog.at_level(logging.ERROR, "baton.store"):
        while page := kernel.list_instances(limit=2, after=seen[-1] if seen else None):
            seen += [one.workflow_id for one in page]
    readable = [each for each in waiting.ids if each not in waiting.unreadable]
    assert seen == readable[::-1]
    assert any(waiting.unreadable[0] in record.getMessage() for record in caplog.records)
    with pytest.raises(Unreadable, match=r"waits\.0\.kind"):
        kernel.get(waiting.unreadable[0])


def test_a_signal_stays_pending_until_its_instance_can_be_read(make: MakeWaiting) -> None:
    waiting = make(WaitForSignal("paid", wait_key="k"))
    signals = [
        {"signal_id": f"s{n}", "workflow_id": each, "signal_type": "paid", "wait_key": "k"}
        for n, each in enumerate(waiting.ids)
    ]
    assert waiting.kernel.deliver_signals(signals) == [True] * 6
    waiting.kernel.reconcile()
    waiting.kernel.drain([QUEUE])
    assert sorted(waiting.ran) == ["k1", "k2", "k4", "k5"]
    waiting.set(READABLE)
    waiting.kernel.reconcile()
    waiting.kernel.drain([QUEUE])
    assert sorted(waiting.ran) == ["k0", "k1", "k2", "k3", "k4", "k5"]


def test_a_group_of_commits_is_judged_but_for_the_one_that_cannot_be(
    make_kernel: MakeKernel, instances: Collection[Any]
) -> None:
    of = definition("test.group", {"a": lambda _: None})
    kernel = make_kernel(of)
    store, clock = kernel._parts.store, kernel._parts.clock
    commits = []
    for n in range(3):
        workflow_id = start(kernel, of, biz_key=f"k{n}")
        held = store.claim(
            workflow_id,
            fingerprints=[of.plan.fingerprint],
            token=f"t{n}",
            owner="o",
            lease_ms=60_000,
        )
        assert held is not None
        commits.append(beginning.begin(held.instance, ("a",)))
    instances.update_one({"biz_key": "k0"}, {"$set": {"waits": 3, "steps.a.seq": 7}})
    answers = commit_group(instances, clock, commits)
    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1:] == [True, True]


@pytest.mark.parametrize("by", ["reconcile", "tick", "deliver_signals"])
@pytest.mark.parametrize(
    "newer",
    [
        {"steps.a.status": "held"},
        {"steps.a.blocked_on": {"reason": "budget"}},
        {"steps.b.status": "held"},
        {"steps.b": 3},
    ],
)
def test_nothing_is_written_into_one_that_cannot_be_read(
    make_kernel: MakeKernel, instances: Collection[Any], by: str, newer: dict[str, Any]
) -> None:
    wait = WaitForSignal("paid", wait_key="k", poll_after=60)
    of = definition("test.newer", {"a": lambda _: wait, "b": lambda _: None})
    kernel = make_kernel(of, with_redis=False)
    workflow_id = start(kernel, of)
    kernel.drain([QUEUE])
    instances.update_one({"workflow_id": workflow_id}, {"$set": newer})
    before = instances.find_one()
    signal = {"signal_id": "s", "workflow_id": workflow_id, "signal_type": "paid", "wait_key": "k"}
    if by == "deliver_signals":
        kernel.deliver_signals([signal])
    else:
        TimeShift(kernel).advance(seconds=61)
        getattr(kernel, by)()
    assert instances.find_one() == before


@pytest.mark.parametrize("by", ["reconcile", "tick"])
@pytest.mark.parametrize("with_redis", [True, False])
def test_one_that_the_server_refuses_to_wake_keeps_no_other_waiting(
    make: MakeWaiting, by: str, with_redis: bool
) -> None:
    waiting = make(Sleep(60), with_redis=with_redis)
    # Text that is a number can be read, and nothing can be added to it.
    waiting.set({"waits.0.kind": "timer", "steps.a.times": {"external_ms": "5"}})
    TimeShift(waiting.kernel).advance(seconds=61)
    for _ in range(2):
        getattr(waiting.kernel, by)()
    waiting.kernel.drain([QUEUE])
    assert {"k1", "k2", "k4", "k5"} <= set(waiting.ran)


def test_a_lease_that_ended_does_not_end_the_tick_of_other_queues(
    make_kernel: MakeKernel, dead_worker: DeadWorker, instances: Collection[Any]
) -> None:
    ran: list[str] = []

    def step(ctx: Any) -> object:
        ran.append(ctx.biz_key)
        return Sleep(60) if ctx.resume is None else None

    of = definition("test.dead", {"a": lambda _: None})
    other = definition("test.other", {"a": step}, queue="other")
    kernel = make_kernel(of, other)
    held = dead_worker.begins(kernel, start(kernel, of, biz_key="held"))
    start(kernel, other, biz_key="sleeper")
    kernel.drain(["other"])
    instances.update_one({"workflow_id": held.workflow_id}, {"$set": {"waits": [{"kind": "x"}]}})
    TimeShift(kernel).advance(seconds=70)
    kernel.tick()
    kernel.drain(["other"])
    assert ran == ["sleeper", "sleeper"]


def test_a_claim_on_one_that_cannot_be_read_is_given_back_with_its_attempt(
    make_kernel: MakeKernel, instances: Collection[Any]
) -> None:
    ran: list[int] = []
    of = definition("test.back", {"a": lambda ctx: ran.append(ctx.attempt)})
    kernel = make_kernel(of)
    workflow_id = start(kernel, of)
    instances.update_one({}, {"$set": {"error": 3}})
    kernel.drain([QUEUE])
    row = instances.find_one()
    assert row is not None
    assert "claim_token" not in row
    assert (row["steps"]["a"]["status"], row["steps"]["a"]["attempt"]) == ("pending", 0)
    instances.update_one({}, {"$unset": {"error": 1}})
    why = kernel.get(workflow_id).blocked_on
    assert why is not None
    assert (why.reason, "error" in str(why.detail)) == (Reason.INCOMPATIBLE_DEFINITION, True)
    TimeShift(kernel).advance(seconds=31)
    kernel.reconcile()
    kernel.drain([QUEUE])
    done = kernel.get(workflow_id)
    assert (done.status, ran) == (InstanceStatus.COMPLETED, [1])
    assert [each.outcome for each in done.steps["a"].attempts] == ["completed"]


def test_a_claim_whose_giving_back_fails_is_left_to_its_lease(
    make_kernel: MakeKernel, instances: Collection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    of = definition("test.lost", {"a": lambda ctx: ran.append(ctx.attempt)})
    kernel = make_kernel(of)
    workflow_id = start(kernel, of)
    instances.update_one({}, {"$set": {"error": 3}})
    commit = InstanceStore.commit

    def failing(self: InstanceStore, wanted: Commit) -> bool:
        if wanted.label == "leave unread":
            raise StoreUnavailable("away")
        return commit(self, wanted)

    monkeypatch.setattr(InstanceStore, "commit", failing)
    kernel.drain([QUEUE])
    row = instances.find_one()
    assert row is not None
    assert row["claim_token"], "nobody could give it back"
    instances.update_one({}, {"$unset": {"error": 1}})
    TimeShift(kernel).advance(seconds=60)
    kernel.reconcile()
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert ran == [2], "a death inside the first step, as of any claim that begins it"
