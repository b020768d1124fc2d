"""Each kind of contradiction in a resource is found and named; a busy system has none."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from kernel import ActivityContext, Kernel, Step, limits
from kernel.errors import RevisionConflict
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(hours=1)
SOON = NOW + timedelta(hours=1)
R = "crawler"


def held(of: str = "wf_gone", *, since: datetime | None = None, expires: datetime = SOON) -> Any:
    owner = {"workflow_id": of, "step": "a", "token": "dead"}
    return {"owner": owner, "since": since or datetime.now(UTC), "expires": expires}


def owners(count: int, of: str = "wf_") -> list[PermitOwner]:
    return [PermitOwner(f"{of}{n}", "a", f"{of}{n}") for n in range(count)]


def over_limit(kernel: Kernel) -> list[str]:
    return [found.fact for found in kernel.verify() if "hold a permit, the last" in found.fact]


def kept(expires: datetime) -> Any:
    return {"workflow_id": "wf_gone", "expires": expires}


@pytest.fixture
def resources(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Collection[Any]:
    return mongo_client[mongo_db_name]["workflow_capacity"]


@pytest.fixture
def used(make_kernel: MakeKernel) -> Kernel:
    """A kernel with a resource that was used and is free: nothing is wrong."""
    of = definition("verify.used", {"a": Step(lambda _: 1, traffic_resource=R)})
    kernel = make_kernel(of, with_redis=False)
    kernel.capacity.set_limit(R, max_concurrency=2)
    start(kernel, of, biz_key="used")
    kernel.drain([QUEUE])
    assert list(kernel.verify()) == []
    return kernel


@pytest.mark.parametrize(
    ("change", "invariant", "says"),
    [
        ({"granted": -1}, 11, "counts below zero: granted"),
        ({"line": 9}, 11, "its line is 9"),
        ({"revision": 0}, 11, "1 changes are kept of 0"),
        ({"holders": [held()] * 2}, 11, "holds two permits"),
        ({"holders": [held("wf_1"), held("wf_2")]}, 11, "2 hold a permit and 1 were granted"),
        ({"max_concurrency": -3}, 11, "max_concurrency is -3"),
        ({"max_starts_per_second": float("nan")}, 11, "max_starts_per_second is nan"),
        ({"starts": [NOW, NOW]}, 11, "starts are not in order"),
        ({"holders": [held(expires=LONG_AGO)]}, 11, "ran out at"),
        ({"holders": [held(since=LONG_AGO)]}, 4, "by a claim that is no more"),
        ({"reservations": [kept(LONG_AGO)]}, 11, "a place kept for wf_gone ran out"),
        ({"line": 1, "refused": 1, "seen_at": LONG_AGO}, 11, "and nobody does"),
        ({"starts": "yesterday"}, 8, "cannot be read"),
        ({"holders": [{"owner": "me"}]}, 8, "cannot be read"),
    ],
)
def test_a_contradiction_in_a_resource_is_found_and_named(
    used: Kernel, resources: Collection[Any], change: Any, invariant: int, says: str
) -> None:
    resources.update_one({"_id": R}, {"$set": change})
    found = list(used.verify())
    assert any(one.invariant == invariant and says in one.fact for one in found), found
    assert all(one.advice and one.subject == R for one in found)


def test_more_permits_than_were_allowed_are_found_and_a_lowered_limit_is_not(
    used: Kernel, resources: Collection[Any]
) -> None:
    later = datetime.now(UTC) + timedelta(seconds=1)
    three = [held(f"wf_{n}", since=later) for n in range(3)]
    resources.update_one({"_id": R}, {"$set": {"holders": three, "granted": 9}})
    assert [one.fact[:20] for one in used.verify()] == ["3 hold a permit, the"]
    for each in three:
        each["since"] = datetime.now(UTC) - timedelta(seconds=30)
    resources.update_one({"_id": R}, {"$set": {"holders": three}})
    assert list(used.verify()) == []


def test_a_waiter_whom_nobody_lets_go_is_found(
    make_kernel: MakeKernel, resources: Collection[Any]
) -> None:
    of = definition("verify.put_off", {"a": Step(lambda _: 1, traffic_resource=R)})
    kernel = make_kernel(of, with_redis=False)
    kernel.capacity.pause(R)
    start(kernel, of, biz_key="put off")
    kernel.drain([QUEUE])
    assert list(kernel.verify()) == []
    resources.update_one({"_id": R}, {"$set": {"paused": False, "seen_at": LONG_AGO}})
    assert ["somebody waits, there is room" in one.fact for one in kernel.verify()] == [True]


def test_reconcile_drops_what_ran_out_long_ago(used: Kernel, resources: Collection[Any]) -> None:
    over = {"holders": [held(expires=LONG_AGO)], "reservations": [kept(LONG_AGO)]}
    resources.update_one({"_id": R}, {"$set": over})
    used.reconcile()
    row = resources.find_one({"_id": R})
    assert row is not None
    assert (row["holders"], row["reservations"]) == ([], [])
    assert list(used.verify()) == []


def test_resources_are_looked_at_in_bounds(used: Kernel, resources: Collection[Any]) -> None:
    resources.insert_many([{"_id": f"r{n}"} for n in range(4)])
    seen: list[int] = []
    list(used.verify(limit=2, on_page=lambda so_far: seen.append(so_far.counts["resources"])))
    assert seen[-1] == 2
    before = list(resources.find())
    list(used.verify(on_page=lambda so_far: seen.append(so_far.counts["resources"])))
    assert seen[-1] == 5
    assert list(resources.find()) == before


def test_a_busy_resource_has_no_findings(make_kernel: MakeKernel) -> None:
    def call(ctx: ActivityContext) -> None:
        ctx.cancelled.wait(0.002)

    names = {"a": R, "b": [R, "other"]}
    of = definition(
        "verify.crowded",
        {step: Step(call, traffic_resource=named) for step, named in names.items()},
    )
    kernel = make_kernel(of, with_redis=False, slots_per_child=4)
    kernel.capacity.set_limit(R, max_concurrency=2)
    ids = [start(kernel, of, biz_key=f"crowded:{n}") for n in range(20)]
    over = threading.Event()

    def work(step: Callable[[], object]) -> None:
        while not over.is_set():
            step()

    sizes = iter([1, 3, 2] * 10_000)
    steps: list[Callable[[], object]] = [
        lambda: kernel.drain([QUEUE]),
        kernel.tick,
        kernel.reconcile,
        lambda: kernel.capacity.set_limit(R, max_concurrency=next(sizes)),
    ]
    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        looks = 0
        while looks < 3 or not all(kernel.get(one).status.is_terminal for one in ids):
            assert list(kernel.verify()) == []
            looks += 1
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert list(kernel.verify()) == []


def refused_change(kernel: Kernel) -> None:
    with pytest.raises(RevisionConflict):
        kernel.capacity.set_limit(R, max_concurrency=1, if_revision=77)


#: What somebody, or a worker, does to a resource without touching its limits.
OTHER_CHANGES: dict[str, Callable[[Kernel], object]] = {
    "a worker's cooldown": lambda kernel: kernel._parts.permits.store.cool_down(
        R, for_ms=1000, by="w/s", reason="429"
    ),
    "a pause and its end": lambda kernel: (kernel.capacity.pause(R), kernel.capacity.resume(R)),
    "a cooldown": lambda kernel: kernel.capacity.cooldown(R, seconds=5),
    "a change refused": refused_change,
}


@pytest.mark.parametrize("change", OTHER_CHANGES.values(), ids=OTHER_CHANGES)
def test_too_many_permits_stay_found_whatever_else_is_changed_of_the_resource(
    used: Kernel, resources: Collection[Any], change: Callable[[Kernel], object]
) -> None:
    granted = used._parts.permits.store.acquire(R, owners(2), lease_ms=600_000)
    last = max(one.since for one in granted.holders) + timedelta(milliseconds=2)
    one_more = {"$push": {"holders": held("wf_bug", since=last)}, "$inc": {"granted": 1}}
    resources.update_one({"_id": R}, one_more)
    TimeShift(used).advance(seconds=1)
    assert len(over_limit(used)) == 1
    change(used)
    assert len(over_limit(used)) == 1


@pytest.mark.parametrize("burst", [5, 60, 200])
def test_permits_granted_before_an_override_was_over_are_no_finding(
    make_kernel: MakeKernel, burst: int
) -> None:
    kernel = make_kernel(with_redis=False)
    store, shift = kernel._parts.permits.store, TimeShift(kernel)
    kernel.capacity.set_limit(R, max_concurrency=1)
    kernel.capacity.set_limit(R, max_concurrency=1000, expires_in=60)
    shift.advance(seconds=59.97)
    store.acquire(R, owners(burst), lease_ms=900_000)
    store.release(R, owners(burst - 4))
    shift.advance(seconds=5)
    assert over_limit(kernel) == [], "the override is over, and no update has noticed"
    store.acquire(R, owners(1, "late"), lease_ms=60_000)  # any update will do
    assert over_limit(kernel) == []
    assert kernel.capacity.status(R).max_concurrency == 1


def test_the_sooner_end_of_two_overrides_is_the_end_of_one(
    make_kernel: MakeKernel, resources: Collection[Any]
) -> None:
    kernel = make_kernel(with_redis=False)
    store, shift = kernel._parts.permits.store, TimeShift(kernel)
    kernel.capacity.set_limit(R, max_concurrency=1)
    kernel.capacity.set_limit(R, max_concurrency=9, expires_in=60)
    kernel.capacity.set_limit(R, max_starts_per_second=9.0, expires_in=3600)
    store.acquire(R, owners(5), lease_ms=900_000)
    shift.advance(seconds=90)
    resources.update_one({"_id": R}, {"$set": {"line": 1, "refused": 1, "seen_at": LONG_AGO}})
    assert [found.fact for found in kernel.verify() if found.invariant == 11] == [], "no room"
    store.acquire(R, owners(1, "late"), lease_ms=60_000)  # any update will do
    assert over_limit(kernel) == []
    status = kernel.capacity.status(R)
    assert (status.max_concurrency, status.max_starts_per_second) == (1, 9.0)


def test_permits_granted_after_an_override_was_over_are_judged_by_the_limit_before_it(
    make_kernel: MakeKernel, resources: Collection[Any]
) -> None:
    kernel = make_kernel(with_redis=False)
    store, shift = kernel._parts.permits.store, TimeShift(kernel)
    kernel.capacity.set_limit(R, max_concurrency=2)
    kernel.capacity.set_limit(R, max_concurrency=3, expires_in=60)
    store.acquire(R, owners(3), lease_ms=900_000)
    shift.advance(seconds=61)
    store.acquire(R, owners(1, "refused"), lease_ms=60_000)
    shift.advance(seconds=1)
    late = held("wf_bug", since=store.read(R).now)
    resources.update_one({"_id": R}, {"$push": {"holders": late}, "$inc": {"granted": 1}})
    assert len(over_limit(kernel)) == 1


def test_an_override_is_known_for_one_though_its_entry_left_the_history(
    make_kernel: MakeKernel,
) -> None:
    kernel = make_kernel(with_redis=False)
    store, shift = kernel._parts.permits.store, TimeShift(kernel)
    kernel.capacity.set_limit(R, max_concurrency=2)
    kernel.capacity.set_limit(R, max_concurrency=8, expires_in=3600)
    for _ in range(limits.LIMIT_CHANGES_KEPT):
        shift.advance(seconds=60)
        store.cool_down(R, for_ms=1000, by="w/s", reason="429")
    shift.advance(seconds=3599 - 60 * limits.LIMIT_CHANGES_KEPT)
    assert not any("max_concurrency" in each.change for each in kernel.capacity.status(R).history)
    store.acquire(R, owners(8), lease_ms=900_000)
    shift.advance(seconds=300)
    assert over_limit(kernel) == []
    store.acquire(R, owners(1, "late"), lease_ms=60_000)
    assert over_limit(kernel) == []


def test_a_limit_lowered_just_after_a_burst_of_grants_is_no_finding(used: Kernel) -> None:
    used.capacity.set_limit(R, max_concurrency=100)
    granted = used._parts.permits.store.acquire(R, owners(100), lease_ms=60_000)
    used.capacity.set_limit(R, max_concurrency=1)
    [*_, last] = [held.since for held in granted.holders]
    assert last > granted.now, "the last of the burst is told later than it was granted"
    assert list(used.verify()) == []
