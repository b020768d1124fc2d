"""One signal this version cannot read: it waits for one that can, and everybody else is woken."""

import logging
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from kernel import ActivityContext, Kernel, WaitForSignal, limits
from kernel.reconcile import duties
from kernel.testing import TimeShift
from kernel.verifying import looking
from tests.kit.kernels import QUEUE, MakeKernel, definition, start


def wait(ctx: ActivityContext) -> Any:
    return "on" if ctx.resume else WaitForSignal("paid", wait_key="k")


ORDER = definition("test.inbox", {"a": wait})

#: What a later version might store of a signal, and this one does not know.
NEWER: list[dict[str, Any]] = [
    {"wait_key": {"parts": ["k"]}},
    {"generation": "first"},
    {"created_at": "soon"},
    {"signal_id": 7},
    {"signal_id": {"of": "s"}},
    {"workflow_id": 7},
]


@pytest.fixture
def inbox(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Collection[Any]:
    return mongo_client[mongo_db_name]["workflow_signals"]


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Kernel:
    return make_kernel(ORDER, with_redis=False)


def waiting(kernel: Kernel, count: int) -> list[str]:
    """Register instances and let them run until they wait for a signal."""
    ids = [start(kernel, ORDER, biz_key=f"k{n}") for n in range(count)]
    kernel.drain([QUEUE])
    return ids


def stored(signal_id: str, workflow_id: str, /, **other: Any) -> dict[str, Any]:
    """Return a pending signal as a sender leaves it that dies before it tries to deliver."""
    identity = {"signal_id": signal_id, "workflow_id": workflow_id, "signal_type": "paid"}
    return {**identity, "wait_key": "k", "generation": 0, "status": "pending", **other}


def is_over(kernel: Kernel, workflow_id: str) -> bool:
    kernel.drain([QUEUE])
    return kernel.get(workflow_id).status.is_terminal


@pytest.mark.parametrize("newer", NEWER, ids=str)
def test_reconcile_wakes_the_others_and_writes_nothing_to_it(
    kernel: Kernel, inbox: Collection[Any], newer: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (workflow_id,) = waiting(kernel, 1)
    inbox.insert_one(stored("a", workflow_id, **newer))
    before = inbox.find_one()
    inbox.insert_one(stored("b", workflow_id))
    with caplog.at_level(logging.ERROR, "baton.store"):
        assert kernel.reconcile().failed == {}
    told = any("passed over: signal" in record.getMessage() for record in caplog.records)
    assert told is ("signal_id" not in newer)  # no page reaches those; verify names them
    assert is_over(kernel, workflow_id)
    assert before is not None
    assert inbox.find_one({"_id": before["_id"]}) == before


def test_pages_go_on_past_those_that_cannot_be_read(
    kernel: Kernel, inbox: Collection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = waiting(kernel, 5)
    monkeypatch.setattr(duties, "_BOUND", 2)
    bad = [stored(f"s{n}", ids[0], generation="first") for n in (0, 1, 2, 3, 5, 7)]
    odd = [stored("", ids[0], signal_id=n) for n in range(3)]
    good = [stored(f"s{n}", each) for n, each in zip((4, 6, 8, 9), ids[1:], strict=True)]
    inbox.insert_many([*bad, *odd, *good])
    read = kernel._parts.machine.inbox.pending_page  # type: ignore[attr-defined]
    seen: list[str] = []
    while page := [one.signal_id for one in read(limit=2, after=seen[-1] if seen else None)]:
        seen += page
    assert seen == ["s4", "s6", "s8", "s9"]
    assert kernel.reconcile().failed == {}
    assert all(is_over(kernel, each) for each in ids[1:])
    assert not is_over(kernel, ids[0])


def test_whoever_begins_to_wait_finds_what_came_early_behind_them(
    kernel: Kernel, inbox: Collection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SIGNALS_READ", 2)
    workflow_id = start(kernel, ORDER)
    inbox.insert_many([stored(f"a{n}", workflow_id, created_at=n) for n in range(5)])
    inbox.insert_one(stored("b", workflow_id, created_at=None, _id=1))
    inbox.update_one({"_id": 1}, {"$currentDate": {"created_at": True}})
    assert is_over(kernel, workflow_id)


def test_the_sender_who_repeats_it_hears_that_it_is_recorded(
    kernel: Kernel, inbox: Collection[Any]
) -> None:
    first, second = waiting(kernel, 2)
    inbox.insert_one(stored("s0", first, wait_key={"parts": ["k"]}))
    before = inbox.find_one()
    page = [
        {"signal_id": f"s{n}", "workflow_id": each, "signal_type": "paid", "wait_key": "k"}
        for n, each in enumerate((first, second))
    ]
    assert kernel.deliver_signals(page) == [False, True]
    assert is_over(kernel, second)
    assert not is_over(kernel, first)
    assert inbox.find_one({"signal_id": "s0"}) == before
    inbox.update_one({"signal_id": "s0"}, {"$set": {"wait_key": "k"}})
    kernel.reconcile()
    assert is_over(kernel, first)


@pytest.mark.parametrize("newer", NEWER, ids=str)
def test_verify_names_it_and_looks_at_all_others(
    kernel: Kernel, inbox: Collection[Any], newer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "_PAGE", 1)
    (workflow_id,) = waiting(kernel, 1)
    now = kernel._parts.store.now()
    inbox.insert_one(stored("a", workflow_id, **newer))
    inbox.insert_one(stored("b", workflow_id, created_at=now))
    TimeShift(kernel).advance(seconds=3600)
    found = {one.subject: one for one in kernel.verify()}
    assert found.keys() == {str(newer.get("signal_id", "a")), "b"}
    fault = found[str(newer.get("signal_id", "a"))]
    assert fault.invariant == 8
    assert next(iter(newer)) in fault.fact
    assert "woke nobody" in found["b"].fact
