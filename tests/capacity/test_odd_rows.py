"""The front of a line says the same of each, read as rows or whole; what is odd stops nobody."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson import Code, Decimal128, Int64, MaxKey, MinKey, Regex
from bson.raw_bson import RawBSONDocument
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo.collection import Collection

from kernel.store.standing import Standing
from tests.capacity.test_lines import Line, MakeLine, R, make_line, put, unset

__all__ = ["make_line"]

BLOCKED = {"resources": [R], "needs": [R], "since": datetime(2026, 1, 1, tzinfo=UTC), "step": "a"}

#: Steps that are none, or not states: nobody guesses what they wait for.
NO_STEPS: dict[str, list[dict[str, Any]]] = {
    "none": put("steps", None),
    "gone": unset("steps"),
    "a list": put("steps", [{"a": {}}]),
    "text": put("steps", "x"),
    "one a list": put("steps.b", [{"blocked_on": {"resources": R}, "not_before": 3}]),
    "one a number": put("steps.b", 3),
    "one is nothing": put("steps.b", None),
    "blocked on a list": put("steps.b", {"blocked_on": [BLOCKED]}),
    "blocked on text": put("steps.b", {"blocked_on": R}),
}


def looks(line: Line) -> tuple[list[Standing], list[Standing]]:
    """Return the front as rows and as documents, these without them."""
    waiters = line.kernel._parts.permits.waiters
    whole = waiters.first_whole(R, limit=5)
    return waiters.first(R, limit=5), [replace(each, document=None) for each in whole]


@pytest.mark.parametrize("fault", NO_STEPS)
@pytest.mark.parametrize("by", ["tick", "reconcile"])
def test_one_without_steps_is_passed_over_and_stops_nobody(
    make_line: MakeLine, fault: str, by: str
) -> None:
    line = make_line(with_redis=False)
    line.come("bad", "good", "better")
    line.spoil(NO_STEPS[fault], "bad")
    rows, whole = looks(line)
    assert len(rows) == 2
    assert rows == whole
    line.open()
    line.go_on(getattr(line.kernel, by))
    assert line.ran == ["good", "better"]


@pytest.mark.parametrize("change", [NO_STEPS["none"], put("queue", ["work"])])
def test_a_page_is_filled_past_them(make_line: MakeLine, change: list[dict[str, Any]]) -> None:
    line = make_line()
    bad = [f"bad-{n}" for n in range(3)]
    line.come(*bad, "good")
    line.spoil(change, *bad)
    waiters = line.kernel._parts.permits.waiters
    for look in (waiters.first, waiters.first_whole):
        assert [len(look(R, limit=limit)) for limit in (1, 2, 5)] == [1, 1, 1]


class Odd:
    """Changes of one document, bytes and all, that no driver of ours would write."""

    def __init__(self, instances: Collection[Any]) -> None:
        self._instances = instances

    def write(self, biz_key: str, document: dict[str, Any], *, no_text: str = "") -> None:
        raw = bson.encode(document)
        if no_text:
            assert no_text.encode() in raw
            raw = raw.replace(no_text.encode(), b"\xff" * len(no_text))
        self._instances.database.command(
            "update",
            self._instances.name,
            updates=[{"q": {"biz_key": biz_key}, "u": RawBSONDocument(raw)}],
            bypassDocumentValidation=True,
        )


MARK = "NO-TEXT-AT-ALL"


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        ({"input": MARK}, True),
        ({"unheard_of": MARK}, True),
        ({"workflow_id": MARK}, False),
        ({"queue": MARK}, False),
        ({"steps": {MARK: {"blocked_on": BLOCKED}}}, False),
        ({"steps": {"a": {"blocked_on": {**BLOCKED, "needs": [R, MARK]}}}}, False),
        ({"blocked_on": {**BLOCKED, "step": MARK}}, False),
        ({"blocked_on": {**BLOCKED, "resources": [R, MARK]}}, False),
    ],
)
def test_text_that_is_none_stops_nobody(
    make_line: MakeLine, instances: Collection[Any], change: dict[str, Any], is_read: bool
) -> None:
    line = make_line(with_redis=False)
    line.come("bad", "good", "better")
    document = instances.find_one({"biz_key": "bad"})
    assert document is not None
    Odd(instances).write("bad", document | change, no_text=MARK)
    rows, whole = looks(line)
    assert len(rows) == 2 + is_read
    assert rows == whole
    line.open()
    line.go_on(line.kernel.tick)
    assert [name for name in line.ran if name != "bad"] == ["good", "better"]


def test_a_step_that_waits_elsewhere_only_is_no_step_of_this_line(make_line: MakeLine) -> None:
    line = make_line()
    line.come("one")
    elsewhere = {"blocked_on": {**BLOCKED, "resources": ["other"]}}
    line.spoil(put("steps", {"b": elsewhere, "a": {"blocked_on": BLOCKED}}), "one")
    rows, whole = looks(line)
    assert [each.steps for each in rows] == [("a",)]
    assert rows == whole


_odd: st.SearchStrategy[Any] = st.sampled_from(
    [None, False, 0, -1, 1.5, float("nan"), Int64(7), Decimal128("NaN"), MinKey(), MaxKey(), R, "",
     Code(R), Regex("x"), [], [R], ["other"], [R, 3, None], [[R]], [Code(R)], {}, {"0": R},
     datetime(2026, 1, 1, tzinfo=UTC), {"resources": R}, {"$ref": "x", "$id": 1}]
)  # fmt: skip


def _fields(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, _odd))


_blocked = _odd | st.builds(lambda more: BLOCKED | more, _fields("resources", "needs", "step"))
_step = _odd | st.fixed_dictionaries(
    {}, optional={"blocked_on": _blocked, "not_before": _odd, "status": _odd}
)
_steps = st.dictionaries(st.sampled_from(["a", "b", "c.d", "$e"]), _step, max_size=3) | _odd
_top = st.builds(lambda more: BLOCKED | more, _fields("needs", "step"))


@pytest.mark.usefixtures("make_kernel")
def test_rows_and_documents_say_the_same_of_whatever_stands_there(
    make_line: MakeLine, instances: Collection[Any]
) -> None:
    line = make_line(with_redis=False)
    line.come("bad", "good")
    document = instances.find_one({"biz_key": "bad"})
    assert document is not None

    @settings(
        max_examples=60, deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(_steps, _top, _fields("queue", "priority", "revision", "round_started_at", "input"))
    def says(steps: object, blocked: object, more: dict[str, Any]) -> None:
        changed = document | {"blocked_on": blocked, "steps": steps} | more
        Odd(instances).write("bad", changed)
        rows, whole = looks(line)
        assert rows == whole
        assert len(rows) in (1, 2)

    says()
