"""Each kind of contradiction in MongoDB is found and named; a busy database has none."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from kernel import ActivityContext, Kernel, Sleep, UsageError, WaitForSignal
from kernel.store import reading
from kernel.store.reading import Read, ReadSignal
from kernel.store.reading_resources import ResourceReader
from kernel.verifying import Finding, Verifier, looking
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(hours=1)
IN_LINE = {"reason": "permit", "resources": ["x"], "needs": ["x"]}


def wait(ctx: ActivityContext) -> Any:
    return (ctx.resume and ctx.resume.kind) or WaitForSignal("s", wait_key="k", poll_after=600)


DONE = definition("verify.done", {"a": lambda _: 1, "b": lambda _: 2})
WAITING = definition("verify.waiting", {"a": wait})


@pytest.fixture
def facts(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Database[Any]:
    return mongo_client[mongo_db_name]


@pytest.fixture
def done(make_kernel: MakeKernel) -> Kernel:
    """A kernel with one completed and one waiting instance: nothing is wrong."""
    kernel = make_kernel(DONE, WAITING, with_redis=False)
    start(kernel, DONE, biz_key="done")
    start(kernel, WAITING, biz_key="waiting")
    kernel.drain([QUEUE])
    assert list(kernel.verify()) == []
    return kernel


def test_nothing_is_written_by_looking(done: Kernel, facts: Database[Any]) -> None:
    before = list(facts["workflow_instances"].find())
    list(done.verify())
    assert list(facts["workflow_instances"].find()) == before


@pytest.mark.parametrize(
    ("key", "change", "invariant", "says"),
    [
        ("done", {"$set": {"workflow_id": "wf_other"}}, 2, "not that of its biz_key"),
        ("done", {"$unset": {"output.a": 1}}, 5, "a is completed and has no output"),
        ("done", {"$set": {"steps.a.checkpoint": 1}}, 5, "still has a checkpoint"),
        ("done", {"$set": {"steps.a.status": "pending"}}, 5, "has an output"),
        ("done", {"$set": {"steps.a.status": "failed"}}, 4, "b is completed before a"),
        ("done", {"$set": {"steps.a.failures": 4}}, 7, "than it was entered: 4 > 1"),
        ("done", {"$set": {"steps.a.attempt": -1}}, 7, "counts below zero"),
        ("done", {"$set": {"claim_token": "x"}}, 4, "held by a claim"),
        ("done", {"$unset": {"finished_at": 1}}, 6, "finished_at is None"),
        ("done", {"$set": {"status": "failed"}}, 6, "does not say why"),
        ("done", {"$set": {"fencing_token": 0}}, 6, "round 0"),
        ("done", {"$set": {"steps.a.status": "vanished"}}, 8, "cannot be read"),
        ("done", {"$set": {"plan": ["a"]}}, 8, "name different steps"),
        ("waiting", {"$set": {"waits": []}}, 10, "waits for nothing"),
        ("waiting", {"$set": {"steps.a.status": "pending"}}, 7, "waits name ['a']"),
        ("waiting", {"$set": {"claimable_time": NOW + timedelta(days=9)}}, 10, "nobody looks"),
        ("waiting", {"$set": {"steps.a.woken_by": ["x", "x"]}}, 7, "woke a twice"),
        ("waiting", {"$set": {"status": "completed"}}, 6, "is over and still waits"),
        ("done", {"$set": {"blocked_on": IN_LINE}}, 6, "stands in line for x"),
    ],
)
def test_a_contradiction_is_found_and_named(
    done: Kernel, facts: Database[Any], key: str, change: Any, invariant: int, says: str
) -> None:
    facts["workflow_instances"].update_one({"biz_key": key}, change)
    found = list(done.verify())
    assert any(one.invariant == invariant and says in one.fact for one in found), found
    assert all(one.advice and one.subject for one in found)
    assert {one.biz_key for one in found} <= {key, ""}


def test_a_missing_unique_index_and_what_came_of_it_are_found(
    done: Kernel, facts: Database[Any]
) -> None:
    instances = facts["workflow_instances"]
    for name in ("biz_key", "workflow_id"):
        instances.drop_index(name)
    row = instances.find_one({"biz_key": "done"})
    assert row is not None
    del row["_id"]
    instances.insert_one(row)
    found = {(one.subject, one.fact) for one in done.verify()}
    assert ("workflow_instances.biz_key", "has no unique index") in found
    assert (row["workflow_id"], "is stored 2 times") in found


@pytest.mark.parametrize(
    ("key", "wait_key", "says"),
    [
        ("waiting", "k", "woke nobody"),
        ("waiting", "another", None),
        ("done", "k", "for an instance that is completed"),
    ],
)
def test_a_signal_that_nobody_looked_at_is_found(
    done: Kernel, facts: Database[Any], key: str, wait_key: str, says: str | None
) -> None:
    row = facts["workflow_instances"].find_one_and_update(
        {"biz_key": key}, {"$set": {"waits.$[].since": LONG_AGO}}
    )
    assert row is not None
    signal = {"signal_id": "1", "workflow_id": row["workflow_id"], "signal_type": "s"}
    signal |= {"wait_key": wait_key, "generation": 0, "status": "pending"}
    facts["workflow_signals"].insert_one(signal | {"created_at": LONG_AGO})
    facts["workflow_signals"].insert_one(
        {**signal, "_id": 2, "signal_id": "2", "created_at": datetime.now(UTC)}
    )
    found = [(one.subject, one.fact) for one in done.verify()]
    assert [subject for subject, _ in found] == ([] if says is None else ["1"])
    assert says is None or says in found[0][1]


class HealedMeanwhile:
    """A reader whose second look finds what the first one missed."""

    def __init__(self, first: Read, second: Read) -> None:
        self._first, self._second = first, second

    def missing_indexes(self) -> list[str]:
        return []

    def page(self, *, limit: int, after: str | None) -> list[Read]:
        return [self._first]

    def again(self, _: object) -> list[Read]:
        return [self._second]

    def pending(self, *, limit: int, after: str | None) -> list[ReadSignal]:
        return []


def test_what_the_second_look_does_not_see_is_not_told(done: Kernel) -> None:
    right = done.get(done.start_or_resume(DONE.plan, biz_key="done").workflow_id)
    wrong = right.model_copy(update={"claim_token": "x"})
    reads = {name: Read(key=1, workflow_id=right.workflow_id, instance=one)
             for name, one in (("right", right), ("wrong", wrong))}  # fmt: skip

    def found(first: str, second: str) -> list[Finding]:
        reader: Any = HealedMeanwhile(reads[first], reads[second])
        parts = done._parts
        resources = ResourceReader(parts.connection, parts.clock)
        return list(Verifier(reader, parts.scan, resources).verify(limit=1))

    assert found("wrong", "right") == []
    assert len(found("wrong", "wrong")) == 1


def test_pages_reach_everything_and_bounds_bound(
    done: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "_PAGE", 2)
    for number in range(3):
        start(done, DONE, biz_key=f"more:{number}")

    def looked(**bounds: Any) -> int:
        seen = [0]
        list(done.verify(on_page=lambda so_far: seen.append(so_far.counts["instances"]), **bounds))
        return seen[-1]

    assert looked() == 5
    assert looked(limit=3) == 3
    assert looked(sample=100) == 5
    assert looked(sample=2) <= 2
    with pytest.raises(UsageError):
        done.verify(limit=0)


def test_a_busy_database_has_no_findings(make_kernel: MakeKernel) -> None:
    def nap(ctx: ActivityContext) -> Any:
        return "rested" if ctx.resume else Sleep(0.01)

    of = definition(
        "verify.busy", {"a": nap, "b": wait, "c": lambda _: 1},
        depends_on={"a": [], "b": [], "c": ["a", "b"]},
    )  # fmt: skip
    kernel = make_kernel(of, with_redis=False, slots_per_child=4)
    ids = [start(kernel, of, biz_key=f"busy:{n}") for n in range(40)]
    over = threading.Event()

    def work(step: Callable[[], object]) -> None:
        while not over.is_set():
            step()

    def ring() -> None:
        for n, workflow_id in enumerate(ids):
            kernel.deliver_signal(
                workflow_id=workflow_id, signal_type="s", wait_key="k", signal_id=f"s{n}"
            )

    steps: list[Callable[[], object]] = [
        lambda: kernel.drain([QUEUE]), kernel.tick, kernel.reconcile, ring,
    ]  # fmt: skip
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


def test_a_document_without_a_name_is_told_and_hides_nobody(
    done: Kernel, facts: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "_PAGE", 1)
    facts["workflow_instances"].insert_one({"hello": "you"}, bypass_document_validation=True)
    facts["workflow_instances"].update_one({"biz_key": "done"}, {"$set": {"fencing_token": 0}})
    nameless, wrong = done.verify()
    assert nameless.invariant == 8
    assert nameless.subject.startswith("_id ")
    assert wrong.fact == "round 0"


@pytest.mark.parametrize("options", [{}, {"sample": 9}])
def test_large_documents_make_smaller_pages_and_none_is_left_out(
    done: Kernel, monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    pages: list[int] = []
    monkeypatch.setattr(reading, "_PAGE_BYTES", 1)
    list(done.verify(on_page=lambda looked: pages.append(looked.counts["instances"]), **options))
    assert pages == [1, 2]
