"""A resource this version cannot read stops nobody but who asks for it, and is left as it is."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo.collection import Collection

from kernel import Definition, Kernel, Reason, Step, Unreadable
from kernel.protocol.resources import PermitOwner
from kernel.store import resource_documents
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

R, FOREIGN = "psp", "a_foreign"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
LATER = datetime(2999, 1, 1, tzinfo=UTC)
OWNER = {"workflow_id": "w", "step": None, "token": "t"}
HELD = {"owner": OWNER, "since": NOW, "expires": LATER}

#: Fields of another shape, and what is said of them.
SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "holders": ({"holders": 3}, "holders: a int, not array"),
    "a holder": ({"holders": [HELD, "x"]}, "holders.1: a str, not object"),
    "its time": ({"holders": [{**HELD, "expires": "soon"}]}, "holders.0.expires: a str, not date"),
    "no time": ({"holders": [{"owner": OWNER, "since": NOW}]}, "holders.0.expires: it is missing"),
    "an owner": (
        {"holders": [{**HELD, "owner": {**OWNER, "part": 1}}]},
        "holders.0.owner.part: it is unknown here",
    ),
    "reservations": ({"reservations": [{"workflow_id": "w"}]}, "reservations.0.expires: it is"),
    "starts": ({"starts": [NOW, 3]}, "starts.1: a int, not date"),
    "paused": ({"paused": "yes"}, "paused: a str, not bool"),
    "a limit": ({"max_concurrency": 2.5}, "max_concurrency: a float, not int or long or null"),
    "no limit": ({"max_concurrency": 0}, "max_concurrency: 0 is out of its bounds"),
    "a rate": ({"max_starts_per_second": 0}, "max_starts_per_second: 0 is out of its bounds"),
    "no number": ({"hold_ms": float("nan")}, "hold_ms: nan is out of its bounds"),
    "its rest": ({"cooldown_until": 3}, "cooldown_until: a int, not date or null"),
    "an override": ({"override": {"until": NOW, "max_concurrency": "8"}}, "override.max_concurr"),
    "the line": ({"line": True}, "line: a bool, not int or long"),
    "the revision": ({"revision": "7"}, "revision: a str, not int or long"),
    "history": ({"history": ["x"]}, "history.0: a str, not object"),
}


class Rig:
    """A kernel beside a resource it cannot read, and one that it can."""

    def __init__(self, kernel: Kernel, stored: Collection[Any], ran: list[str]) -> None:
        self.kernel, self.stored, self.ran = kernel, stored, ran

    def put(self, shape: dict[str, Any]) -> dict[str, Any]:
        document = {"_id": FOREIGN, "line": 1, **shape}
        self.stored.replace_one({"_id": FOREIGN}, document, upsert=True)
        return document

    def go_on(self, by: Callable[[], object], *, turns: int = 6) -> None:
        for _ in range(turns):
            by()
            self.kernel.drain([QUEUE])
            TimeShift(self.kernel).advance(seconds=1)


MakeRig = Callable[..., Rig]


@pytest.fixture
def of(ran: list[str]) -> Definition:
    """A step that needs what its input names."""
    step = Step(lambda ctx: ran.append(ctx.biz_key), traffic_resource=lambda names: names)
    return definition("test.foreign", {"a": step})


@pytest.fixture
def rig(make_kernel: MakeKernel, instances: Collection[Any], of: Definition, ran: list[str]) -> Rig:
    return Rig(make_kernel(of, with_redis=False), instances.database["workflow_capacity"], ran)


def test_the_database_and_this_version_judge_alike_and_the_field_is_said(rig: Rig) -> None:
    store = rig.kernel._parts.permits.store
    for shape, said in SHAPES.values():
        fault = resource_documents.fault_of(rig.put(shape))
        stored = str(rig.stored.find_one({"_id": FOREIGN}))
        assert fault is not None
        assert fault.startswith(said)
        with pytest.raises(Unreadable, match="capacity resource 'a_foreign'"):
            store.read(FOREIGN)
        with pytest.raises(Unreadable):
            store.acquire(FOREIGN, [PermitOwner("w", None, "t")], lease_ms=1000)
        with pytest.raises(Unreadable):
            store.set_paused(FOREIGN, True, by="", reason="", if_revision=None)
        assert [each.fault for each in store.foreign(limit=9)] == [fault]
        assert str(rig.stored.find_one({"_id": FOREIGN})) == stored, "nothing is written"


def test_a_time_beyond_pythons_is_none_this_version_can_read(rig: Rig) -> None:
    rig.stored.database.command(
        "update",
        rig.stored.name,
        updates=[
            {
                "q": {"_id": FOREIGN},
                "u": [{"$set": {"starts": [{"$toDate": {"$toLong": 400000000000000}}]}}],
                "upsert": True,
            }
        ],
    )
    with pytest.raises(Unreadable):
        rig.kernel.capacity.status(FOREIGN)


def test_what_this_version_wrote_can_be_read(rig: Rig) -> None:
    capacity, store = rig.kernel.capacity, rig.kernel._parts.permits.store
    capacity.set_limit(R, max_concurrency=2, max_starts_per_second=5, expires_in=60)
    capacity.cooldown(R, seconds=0.001)
    owners = [PermitOwner(f"w{n}", "s", f"t{n}") for n in range(4)]
    store.acquire(R, owners, lease_ms=60_000)
    store.reserve(R, ["w4"])
    store.release(R, owners[:1])
    store.gather(R, "w5", for_ms=60_000)
    row = rig.stored.find_one({"_id": R})
    assert row is not None
    assert resource_documents.fault_of(row) is None
    assert rig.stored.count_documents(resource_documents.READABLE) == 1
    assert store.foreign(limit=9) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_one_that_is_spoilt_a_moment_after_it_was_read_loses_nothing(
    rig: Rig, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, owner = rig.kernel._parts.permits.store, PermitOwner("w", None, "t")
    store.acquire(FOREIGN, [owner], lease_ms=60_000)
    rig.put(SHAPES[shape][0])
    spoilt = rig.stored.find_one({"_id": FOREIGN})
    with suppress(Unreadable):  # whether it has been noticed yet or not
        store.acquire(FOREIGN, [PermitOwner("v", None, "u")], lease_ms=1000)
    kept = rig.stored.find_one({"_id": FOREIGN})
    assert spoilt is not None
    assert kept is not None
    for name in spoilt.keys() - {"line"}:  # a count that is none begins anew
        was, now = spoilt[name], kept[name]
        assert str(now[: len(was)] if isinstance(was, list) else now) == str(was)
    monkeypatch.setattr(resource_documents, "_BELIEVED_SECONDS", 0.0)
    if "line" not in SHAPES[shape][0]:
        with pytest.raises(Unreadable):
            store.acquire(FOREIGN, [owner], lease_ms=1000)


@pytest.mark.parametrize(
    ("by", "shape"), [("tick", "holders"), ("tick", "starts"), ("reconcile", "a holder")]
)
def test_other_lines_go_on_beside_it(rig: Rig, of: Definition, by: str, shape: str) -> None:
    rig.put(SHAPES[shape][0] | {"reservations": [{"workflow_id": "w", "expires": LATER}]})
    store, other = rig.kernel._parts.permits.store, PermitOwner("other", "s", "other")
    rig.kernel.capacity.set_limit(R, max_concurrency=1)
    store.acquire(R, [other], lease_ms=3_600_000)
    start(rig.kernel, of, [R])
    rig.kernel.drain([QUEUE])
    store.release(R, [other])  # as one does who dies of it: only the clock hands on
    rig.go_on(getattr(rig.kernel, by))
    assert rig.ran == ["test:1"]


def test_claims_are_renewed_beside_a_holder_list_nobody_knows(rig: Rig) -> None:
    store, mine = rig.kernel._parts.permits.store, PermitOwner("w", "s", "mine")
    store.acquire(R, [mine], lease_ms=5_000)
    rig.put({"holders": ["x", {**HELD, "owner": {**OWNER, "token": "mine"}}]})
    store.renew(["mine"], lease_ms=60_000)
    [held] = store.read(R).holders
    assert (held.expires - held.since).seconds > 50
    assert store.held_by(["mine"]) == {R: [mine]}


@pytest.mark.parametrize("names", [[FOREIGN], [FOREIGN, R]])
def test_who_asks_for_it_waits_and_goes_on_when_it_can_be_read(
    rig: Rig, of: Definition, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    rig.put(SHAPES["holders"][0])
    rig.kernel.capacity.set_limit(R, max_concurrency=1)
    waits = start(rig.kernel, of, names, biz_key="waits")
    with caplog.at_level(logging.ERROR, "baton"):
        rig.go_on(rig.kernel.tick, turns=2)
        rig.kernel.reconcile()
    assert any(f"passed over: capacity resource '{FOREIGN}'" in m for m in caplog.messages)
    instance = rig.kernel.get(waits)
    assert instance.blocked_on is not None
    assert (instance.blocked_on.reason, instance.blocked_on.resources) == (
        Reason.PERMIT,
        (FOREIGN,),
    )
    assert (instance.steps["a"].attempt, instance.steps["a"].error) == (0, None)
    told = rig.kernel.why(waits)
    assert (told.reason, told.position) == (Reason.PERMIT, None)
    assert rig.kernel._parts.permits.store.read(R).holders == (), "nothing is held meanwhile"
    start(rig.kernel, of, [R], biz_key="goes")
    rig.kernel.drain([QUEUE])
    assert rig.ran == ["goes"]
    rig.stored.delete_one({"_id": FOREIGN})
    rig.go_on(rig.kernel.reconcile)
    assert rig.ran == ["goes", "waits"]


def test_one_that_needs_it_as_well_holds_up_nobody_in_the_line(rig: Rig, of: Definition) -> None:
    store, other = rig.kernel._parts.permits.store, PermitOwner("other", "s", "other")
    rig.kernel.capacity.set_limit(R, max_concurrency=1)
    store.acquire(R, [other], lease_ms=3_600_000)
    rig.kernel.capacity.pause("zzz")
    start(rig.kernel, of, [R, "zzz"], biz_key="both")
    start(rig.kernel, of, [R], biz_key="one")
    rig.kernel.drain([QUEUE])
    rig.stored.update_one({"_id": "zzz"}, {"$set": {"holders": 3}})
    store.release(R, [other])
    rig.go_on(rig.kernel.tick)
    assert rig.ran == ["one"]


@pytest.mark.parametrize("limit", [1, 100])
def test_a_permit_of_one_that_is_spoilt_meanwhile_ends_nobodys_work(
    make_kernel: MakeKernel, instances: Collection[Any], limit: int
) -> None:
    stored = instances.database["workflow_capacity"]

    def spoil(_: object) -> str:
        stored.update_one({"_id": R}, {"$set": {"starts": 3}})
        return "done"

    of = definition("test.spoil", {"a": Step(spoil, traffic_resource=R), "b": Step(lambda _: 1)})
    kernel = make_kernel(of)
    kernel.capacity.set_limit(R, max_concurrency=limit)
    workflow_id = start(kernel, of)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status.value == "completed"
    assert kernel._parts.permits.groups.postponed() == [], "it is left to its lease"


def test_lists_go_on_past_it_and_who_looks_at_it_is_told(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.put(SHAPES["paused"][0])
    capacity = rig.kernel.capacity
    capacity.pause(R)
    with caplog.at_level(logging.ERROR, "baton.capacity"):
        [shown] = capacity.statuses(capacity.resources())
    assert shown.resource == R
    assert f"passed over: capacity resource '{FOREIGN}'" in caplog.text
    with pytest.raises(Unreadable):
        capacity.status(FOREIGN)
    with pytest.raises(Unreadable):
        capacity.set_limit(FOREIGN, max_concurrency=1)
    [finding] = [each for each in rig.kernel.verify() if each.subject == FOREIGN]
    assert (finding.invariant, finding.fact) == (8, "cannot be read: paused: a str, not bool")


def test_a_change_nobody_can_read_hides_neither_the_others_nor_the_limits(rig: Rig) -> None:
    rig.kernel.capacity.set_limit(R, max_concurrency=2, by="ops", reason="quota")
    rig.stored.update_one({"_id": R}, {"$push": {"history": {"id": "x", "at": "then"}}})
    status = rig.kernel.capacity.status(R)
    assert (status.max_concurrency, [each.reason for each in status.history]) == (2, ["quota"])
    rig.kernel.capacity.pause(R, by="ops", reason="stop")
    assert [each.reason for each in rig.kernel.capacity.status(R).history] == ["quota", "stop"]
