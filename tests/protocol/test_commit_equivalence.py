"""What a holder computes in memory is what MongoDB holds: one language, two evaluators.

Guarantees the ground on which a claim goes on without reading its document back.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel import Plan
from kernel.model import InstanceStatus
from kernel.protocol.apply import apply_changes, apply_commit
from kernel.protocol.commit import Commit, Guard
from kernel.protocol.expressions import (
    Add,
    Earliest,
    FieldValue,
    Json,
    Latest,
    Lit,
    Now,
    Push,
    Record,
    Span,
    Unset,
    WithoutSteps,
)
from kernel.store import Connection, InstanceStore, StoreClock, ensure_schema
from tests.protocol.walking import Walk, differing, plans


@pytest.fixture(scope="module")
def connection(mongo_url: str) -> Iterator[Connection]:
    """One database for all cases: every walk has an instance of its own."""
    connection = Connection(mongo_url, database=f"t_{uuid.uuid4().hex[:16]}")
    ensure_schema(connection)
    yield connection
    connection.client.drop_database(connection.database.name)
    connection.close()


#: What the walks must have met. Left out: `enter failing` and `finish canceled`, which come alone
#: only after a death at one exact place, and else in the write of the last one home.
LABELS = {
    *("create", "claim", "begin", "come home", "come home and settle", "activate", "release"),
    *("begin finalizer", "finalizer later", "finish failed", "supersede", "replay"),
    *("raise priority", "defer incompatible", "hand back", "free dead"),
    *("defer", "defer workflow", "hand on"),
}


def test_every_commit_does_in_mongo_what_it_does_in_memory(connection: Connection) -> None:
    seen: set[str] = set()

    @settings(
        max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(data=st.data(), plan=plans(), seed=st.integers(0, 2**31))
    def take_walk(data: st.DataObject, plan: Plan, seed: int) -> None:
        clock = StoreClock()
        walk = Walk(InstanceStore(connection, clock), clock, plan, data, seed)
        for _ in range(30):
            if not walk.step():
                break
        seen.update(walk.labels)

    take_walk()
    assert LABELS - seen == set()


#: Each expression on a target that is missing, null, a value, a record or a list.
EXPRESSIONS: dict[str, Any] = {
    "lit": Lit({"$a": "$b", "c": [1, None]}),
    "json": Json({"$ref": "x", "$id": 1, "~k": {"": "$$NOW"}}),
    "now": Now(5),
    "field of a record": FieldValue("record"),
    "field that is missing": FieldValue("nowhere.at_all"),
    "span": Span(("early", "nowhere"), end="late"),
    "span without a start": Span(("nowhere",)),
    "record": Record({"a": Lit(1), "gone": FieldValue("nowhere"), "when": Now()}),
    "earliest": Earliest(("late", "early", "nowhere")),
    "latest": Latest(("early", "late", "nowhere")),
    "earliest of none": Earliest(("nowhere",)),
    "unset": Unset(),
}


@pytest.mark.parametrize("target", ["absent", "null", "number", "record", "deep.new.path", "list"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_expression_replaces_whatever_its_target_held(
    connection: Connection, target: str, name: str
) -> None:
    _same_in_both(connection, {target: EXPRESSIONS[name]})


@pytest.mark.parametrize(
    ("target", "expression"),
    [
        ("absent", Add(2)),
        ("null", Add(2)),
        ("number", Add(-1)),
        ("number", Add(Span(("early",), end="late"))),
        ("absent", Push(Record({"a": FieldValue("number"), "b": FieldValue("nowhere")}), keep=2)),
        ("list", Push(Json({"$x": 1}), keep=2)),
        ("list", WithoutSteps(("a", "$b"))),
        ("absent", WithoutSteps(("a",))),
    ],
)
def test_every_expression_on_its_own_target_grows_it_alike(
    connection: Connection, target: str, expression: Any
) -> None:
    _same_in_both(connection, {target: expression})


def _same_in_both(connection: Connection, changes: dict[str, Any]) -> None:
    """Apply one stage to a document that holds one of everything, in memory and in MongoDB."""
    store = InstanceStore(connection, StoreClock())
    base: dict[str, Any] = {
        "type": Lit("x"),
        "queue": Lit("x"),
        "status": Lit("running"),
        "steps": Lit({}),
        "claimable_time": Now(),
        "created_at": Now(),
        "early": Now(-50_000),
        "late": Now(-20_000),
        "null": Lit(None),
        "number": Lit(3),
        "record": Lit({"old": 1, "a": 7}),
        "list": Lit([{"step": "a"}, {"step": "$b"}, {"step": "c"}]),
    }
    workflow_id = f"wf_{uuid.uuid4()}"
    base |= {"workflow_id": Lit(workflow_id), "biz_key": Lit(workflow_id)}
    store.create(workflow_id, base)
    before = store.read(workflow_id)
    assert before is not None
    assert not list(differing(apply_changes({}, base, before.now), _without_id(before.document)))
    guard = Guard(workflow_id=workflow_id, statuses=(InstanceStatus.RUNNING,), claim_token=None)
    commit = Commit(label="one stage", guard=guard, stages=(changes,))
    assert store.commit(commit)
    after = store.read(workflow_id)
    assert after is not None
    expected = _without_id(apply_commit(before.document, commit, before.now))
    assert not list(differing(expected, _without_id(after.document)))


def _without_id(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "_id"}
