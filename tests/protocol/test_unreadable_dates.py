"""A date beyond Python's makes its own document unreadable, and not the answer it came in."""

from datetime import UTC, datetime
from typing import Any

import pytest
from bson.datetime_ms import DatetimeMS
from pymongo import MongoClient
from pymongo.database import Database

from kernel import ActivityContext, Kernel, Sleep, Step, Unreadable, WaitForSignal
from kernel.definition import Definition
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

#: Milliseconds since the epoch: long before year 1, long after 9999.
BEYOND = [-(10**15), 10**15]
FIELDS = ["created_at", "claimable_time", "updated_at", "steps.a.since", "waits.0.since"]


@pytest.fixture
def database(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Database[Any]:
    return mongo_client[mongo_db_name]


@pytest.fixture
def sleeper(ran: list[str]) -> Definition:
    def step(ctx: ActivityContext) -> Any:
        if ctx.resume is None and ctx.input == "sleep":
            return Sleep(60)
        ran.append(ctx.biz_key)
        return None

    return definition("test.dates", {"a": step})


def break_k1(database: Database[Any], field: str, ms: int) -> None:
    change = {"$set": {field: DatetimeMS(ms)}}
    assert database["workflow_instances"].update_one({"biz_key": "k1"}, change).modified_count == 1


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("ms", BEYOND)
@pytest.mark.parametrize("field", FIELDS)
def test_the_others_are_woken_listed_and_checked(
    make_kernel: MakeKernel, database: Database[Any], sleeper: Definition, ran: list[str],
    field: str, ms: int, with_redis: bool,
) -> None:  # fmt: skip
    kernel = make_kernel(sleeper, with_redis=with_redis)
    ids = [start(kernel, sleeper, "sleep", biz_key=f"k{n}") for n in range(4)]
    kernel.drain([QUEUE])
    break_k1(database, field, ms)
    TimeShift(kernel).advance(seconds=61)
    kernel.tick()
    assert kernel.reconcile().failed == {}
    kernel.drain([QUEUE])
    assert sorted(ran) == ["k0", "k2", "k3"]
    with pytest.raises(Unreadable, match=field.rpartition(".")[2]):
        kernel.get(ids[1])
    assert {one.biz_key for one in kernel.list_instances()} == {"k0", "k2", "k3"}
    assert [(one.subject, one.invariant) for one in kernel.verify()] == [(ids[1], 8)]


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("field", ["created_at", "claimable_time", "round_started_at"])
def test_the_others_are_claimed_and_pushed_and_what_waits_longest_is_known(
    make_kernel: MakeKernel, database: Database[Any], sleeper: Definition, ran: list[str],
    field: str, with_redis: bool,
) -> None:  # fmt: skip
    kernel = make_kernel(sleeper, with_redis=with_redis)
    for n in range(4):
        start(kernel, sleeper, biz_key=f"k{n}")
    break_k1(database, field, BEYOND[0])
    oldest = kernel.progress().oldest_due
    assert oldest is not None
    assert abs((oldest - datetime.now(UTC)).total_seconds()) < 3600
    assert kernel.reconcile().failed == {}
    kernel._parts.drain.poll([QUEUE])
    assert sorted(ran) == ["k0", "k2", "k3"]


def test_a_signal_of_such_a_date_keeps_no_other_from_waking(
    make_kernel: MakeKernel, database: Database[Any]
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return None if ctx.resume else WaitForSignal("paid", wait_key="k")

    order = definition("test.dates.signal", {"a": wait})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    identity = {"workflow_id": workflow_id, "signal_type": "paid", "wait_key": "k"}
    row = {**identity, "generation": 0, "status": "pending"}
    database["workflow_signals"].insert_many(
        [
            {**row, "signal_id": "a", "created_at": DatetimeMS(BEYOND[0])},
            {**row, "signal_id": "b", "created_at": datetime.now(UTC)},
        ]
    )
    assert kernel.reconcile().failed == {}
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status.is_terminal


@pytest.mark.parametrize("ms", BEYOND)
@pytest.mark.parametrize("field", ["blocked_on.since", "round_started_at"])
def test_a_look_at_the_front_of_a_line_is_filled_past_it(
    make_kernel: MakeKernel, database: Database[Any], ran: list[str], field: str, ms: int
) -> None:
    def step(ctx: ActivityContext) -> None:
        ran.append(ctx.biz_key)

    order = definition("test.dates.line", {"a": Step(step, traffic_resource="psp")})
    kernel = make_kernel(order)
    kernel.tick()
    kernel.capacity.set_limit("psp", max_concurrency=1)
    permits, other = kernel._parts.permits, PermitOwner("other", "s", "other")
    assert permits.store.acquire("psp", [other], lease_ms=3_600_000).holds(other)
    ids = []
    for n in (1, 2):
        ids.append(start(kernel, order, biz_key=f"k{n}"))
        kernel.drain([QUEUE])
    database["workflow_instances"].update_one(
        {"biz_key": "k2"}, {"$set": {"priority": 3}}
    )  # so that the other one stays the first, whatever it says
    break_k1(database, field, ms)
    for look in (permits.waiters.first, permits.waiters.first_whole):
        assert [one.workflow_id for one in look("psp", limit=1)] == ids[1:]
    permits.store.release("psp", [other])
    for _ in range(10):
        kernel.tick()
        kernel.drain([QUEUE])
        TimeShift(kernel).advance(seconds=1)
    assert ran == ["k2"]
    assert next(iter(kernel.verify())).subject == ids[0]


def beat(kernel: Kernel, owner: str) -> None:
    kernel._parts.beats.beat(
        owner, queues=[QUEUE], served=[], children=1, claims=0, stopping=False, claimed_ago=1.0
    )


@pytest.mark.parametrize(
    "change",
    [
        {"$set": {"beat_at": DatetimeMS(BEYOND[1])}},
        {"$set": {"claimed_at": DatetimeMS(BEYOND[1])}},
        {"$unset": {"served": 1}},
        {"$set": {"queues": None}},
    ],
    ids=str,
)
def test_a_beat_that_cannot_be_read_hides_no_other_worker(
    make_kernel: MakeKernel, database: Database[Any], sleeper: Definition, change: dict[str, Any]
) -> None:
    kernel = make_kernel(sleeper)
    beat(kernel, "newer")
    beat(kernel, "ours")
    database["workflow_workers"].update_one({"_id": "newer"}, change)
    assert [one.owner for one in kernel.workers()] == ["ours"]
    assert kernel.progress().workers == 1


@pytest.mark.parametrize("cursor", [{"page": 3}, "k1", {"time": "soon", "workflow_id": "wf"}])
def test_a_cursor_another_version_left_means_the_beginning(
    make_kernel: MakeKernel, database: Database[Any], sleeper: Definition, ran: list[str],
    cursor: object,
) -> None:  # fmt: skip
    kernel = make_kernel(sleeper)
    kernel.reconcile()
    start(kernel, sleeper)
    changed = database["workflow_leases"].update_one(
        {"_id": "reconcile"}, {"$set": {"cursors.lost_candidates": cursor}}
    )
    assert changed.modified_count == 1
    assert kernel.reconcile().failed == {}
    kernel.drain([QUEUE])
    assert ran == ["test:1"]
