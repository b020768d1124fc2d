"""What handing on needs to know of one waiter, and whether its stored document tells it (pure).

After somebody wrote by hand, or while a new version is rolled out, a document may stand in a line
that says no time, revision or lane this version knows. It is nobody's fault but its own: it is
passed over and said (design 1.3), never guessed at, and those behind it go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kernel.model import Priority
from kernel.store.connection import Document

_LANES: Final = [int(priority) for priority in Priority]
#: What must be there: its type in the database, and as it is read.
_NEEDED: Final[dict[str, tuple[list[str], type]]] = {
    "workflow_id": (["string"], str),
    "queue": (["string"], str),
    "priority": (["int", "long"], int),
    "revision": (["int", "long"], int),
    "blocked_on.since": (["date"], datetime),
    "round_started_at": (["date"], datetime),
}
#: The dates that can be read; a filter of a range is met by dates only.
_PYTHONS: Final = {
    "$gte": datetime.min.replace(tzinfo=UTC),
    "$lte": datetime.max.replace(tzinfo=UTC),
}
#: What the connection reads for bytes that are no text: a name with it names nothing.
_NO_TEXT: Final = "\ufffd"
_NOTHING: Final = ["missing", "null", "undefined"]
#: Of a row: its steps as the database lists them, none where they are not an object.
STEPS: Final[dict[str, Any]] = {
    "$cond": [{"$eq": [{"$type": "$steps"}, "object"]}, {"$objectToArray": "$steps"}, []]
}
#: Of a row: whether its steps are states, each blocked on nothing or on something this tells apart.
HAS_STEPS: Final[dict[str, Any]] = {
    "$and": [
        {"$eq": [{"$type": "$steps"}, "object"]},
        {
            "$allElementsTrue": {
                "$map": {
                    "input": STEPS,
                    "as": "s",
                    "in": {
                        "$and": [
                            {"$eq": [{"$type": "$$s.v"}, "object"]},
                            {"$in": [{"$type": "$$s.v.blocked_on"}, ["object", *_NOTHING]]},
                        ]
                    },
                }
            }
        },
    ]
}
#: Of one of `STEPS`: whether it has a time.
IS_TIMED: Final[dict[str, Any]] = {"$not": [{"$in": [{"$type": "$$s.v.not_before"}, _NOTHING]}]}
#: The filter of those that can be read; what a filter cannot tell (`needs`) is told by `read`.
READABLE: Final[dict[str, Any]] = {
    **{path: {"$type": types} for path, (types, _) in _NEEDED.items()},
    **{path: _PYTHONS for path, (_, kind) in _NEEDED.items() if kind is datetime},
    "$and": [{"priority": {"$in": _LANES}}],
    "$expr": {
        "$and": [
            {"$isArray": "$blocked_on.resources"},
            # Of a field that is an array, a filter by type looks at what stands in it.
            *({"$in": [{"$type": f"${path}"}, types]} for path, (types, _) in _NEEDED.items()),
            HAS_STEPS,
        ]
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An instance in a line: what handing on to it needs to know.

    `steps` are those put off because of this resource (none: the workflow itself), `needs` all
    resources the first of them needs at once.
    """

    workflow_id: str
    queue: str
    priority: int
    revision: int
    since: datetime
    started: datetime
    step: str | None
    steps: tuple[str, ...]
    needs: frozenset[str]
    #: Which resources it waits for; whether those steps need the same ones, and nothing else of the
    #: instance has a time at which it goes on.
    resources: tuple[str, ...] = ()
    is_plain: bool = False
    #: The instance whole, as the database has it, where it was asked for and is not large.
    document: Document | None = None


#: Whose row could not be read, and for which fields.
Fault = tuple[object, list[str]]


def read(rows: Iterable[Document]) -> tuple[list[Standing], list[Fault]]:
    """Return the rows of a line as typed values, and those that cannot be read."""
    standing: list[Standing] = []
    faults: list[Fault] = []
    for row in rows:
        if fields := _missing(row):
            faults.append((row.get("workflow_id"), fields))
        else:
            standing.append(_as_standing(row))
    return standing, faults


def row_of(document: Document, resource: str) -> Document:
    """Return the row of a line as the database makes it of a document, which is kept with it."""
    steps = document.get("steps")
    states = steps if isinstance(steps, dict) else {}
    has_steps = states is steps and all(
        isinstance(s, dict) and isinstance(s.get("blocked_on"), dict | None)
        for s in states.values()
    )
    put_off, timed = [], 0
    for name, state in states.items() if has_steps else ():
        blocked = state.get("blocked_on") or {}
        names = blocked.get("resources")
        if isinstance(names, list) and resource in names:
            put_off.append({"k": name, "needs": blocked.get("needs")})
        timed += state.get("not_before") is not None
    told = {"put_off": put_off, "timed": timed, "has_steps": has_steps}
    return {**document, **told, "document": document}


def told(faults: Sequence[Fault], *, most: int = 5) -> str:
    """Return who was passed over for what, in one line."""
    named = [f"{who} ({', '.join(fields)})" for who, fields in faults[:most]]
    more = [f"{len(faults) - most} more"] if len(faults) > most else []
    return ", ".join(named + more)


def _missing(row: Document) -> list[str]:
    """Name the fields of a row that are not there, or not what this version knows."""
    faults = [path for path, (_, kind) in _NEEDED.items() if not _is(_at(row, path), kind)]
    if "priority" not in faults and row["priority"] not in _LANES:
        faults.append("priority")
    if not _are_names(_at(row, "blocked_on.resources")):
        faults.append("blocked_on.resources")
    step = _at(row, "blocked_on.step")
    if step is not None and not _is_text(step):
        faults.append("blocked_on.step")
    if not (row["has_steps"] and all(_is_text(step["k"]) for step in row["put_off"])):
        return [*faults, "steps"]
    needs = [_at(row, "blocked_on.needs"), *(step.get("needs") for step in row["put_off"])]
    if not all(each is None or _are_names(each) for each in needs):
        faults.append("needs")
    return faults


def _as_standing(row: Document) -> Standing:
    blocked, steps = row["blocked_on"], row["put_off"]
    needs = steps[0].get("needs") if steps else blocked.get("needs")
    return Standing(
        workflow_id=row["workflow_id"],
        queue=row["queue"],
        priority=int(row["priority"]),
        revision=int(row["revision"]),
        since=blocked["since"],
        started=row["round_started_at"],
        step=blocked.get("step"),
        steps=tuple(step["k"] for step in steps),
        needs=frozenset(needs or ()),
        resources=tuple(blocked["resources"]),
        is_plain=row["timed"] == len(steps) and all(s.get("needs") == needs for s in steps),
        document=row.get("document"),
    )


def _at(row: Document, path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is(value: object, kind: type) -> bool:
    if kind is str:
        return _is_text(value)
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    """Tell text from what cannot be written as it was read: bytes that are none, or code."""
    return type(value) is str and _NO_TEXT not in value


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))
