"""Stored resources as typed values, and those this version cannot read (design 1.3, 2.5).

During a rollout, or after somebody wrote by hand, a resource may hold what this version does not
know. Its own updates would then fail in the database, or do what nobody means: a holder without
the time this version knows would be dropped as one that is over. So each command names the shape it
understands in its filter, and a document of another shape is passed over by it. Updates of one that
was found readable within a second name less (`Judged`): what they could destroy.

Guarantees that what the filter lets through is read as a value, and that what it holds back is told
with the field that is wrong (`Unreadable`). Leaves to others: what a document means
(`kernel.protocol.resources`), which commands there are (`kernel.store.capacity`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import NoneType
from typing import Any, Final

from kernel import limits
from kernel.errors import Unreadable
from kernel.protocol.resources import Held, PermitOwner, ResourceState
from kernel.store.codec import from_stored
from kernel.store.connection import Document

Shape = Mapping[str, Any]

_TEXT: Final[Shape] = {"bsonType": "string"}
_TIME: Final[Shape] = {"bsonType": "date"}
_COUNT: Final[Shape] = {"bsonType": ["int", "long"]}
_LIMITS: Final[dict[str, Shape]] = {
    "max_concurrency": {
        "bsonType": ["int", "long", "null"],
        "minimum": 1,
        "maximum": limits.CONCURRENCY_MAX,
    },
    "max_starts_per_second": {
        "bsonType": ["double", "int", "long", "null"],
        "minimum": limits.STARTS_PER_SECOND_MIN,
        "maximum": limits.STARTS_PER_SECOND_MAX,
    },
}


def _or_null(shape: Shape) -> Shape:
    return {**shape, "bsonType": [shape["bsonType"], "null"]}


def _record(**properties: Shape) -> dict[str, Any]:
    return {"bsonType": "object", "required": list(properties), "properties": properties}


def _list_of(items: Shape) -> Shape:
    return {"bsonType": "array", "items": items}


#: An owner is compared as a whole, so that one with a field more is nobody this version knows.
_OWNER: Final = {
    **_record(workflow_id=_TEXT, step={"bsonType": ["string", "null"]}, token=_TEXT),
    "additionalProperties": False,
}
#: What this version knows, as the database's own schema language says it; fields may be missing.
SHAPE: Final[Shape] = {
    "bsonType": "object",
    "properties": {
        "_id": _TEXT,
        **_LIMITS,
        **dict.fromkeys(("revision", "line", "queued", "granted", "refused"), _COUNT),
        **dict.fromkeys(("cooldown_until", "limits_changed_at"), _or_null(_TIME)),
        "paused": {"bsonType": "bool"},
        "hold_ms": {"bsonType": ["double", "int", "long", "null"], "minimum": 0},
        "override": {
            "bsonType": ["object", "null"],
            "properties": {
                "until": _TIME,
                "sooner": {"bsonType": "object", "properties": dict.fromkeys(_LIMITS, _TIME)},
                **_LIMITS,
            },
        },
        "holders": _list_of(_record(owner=_OWNER, since=_TIME, expires=_TIME)),
        "reservations": _list_of(_record(workflow_id=_TEXT, expires=_TIME)),
        "handed": _list_of(_TEXT),
        "starts": _list_of(_TIME),
        "history": _list_of({"bsonType": "object"}),
    },
}
#: Where times stand: one that Python cannot hold is none for this version.
_TIMES: Final = (
    "cooldown_until",
    "limits_changed_at",
    "override.until",
    *(f"override.sooner.{name}" for name in _LIMITS),
    "holders.since",
    "holders.expires",
    "reservations.expires",
    "starts",
)
_BEYOND: Final = (
    {"$gt": datetime.max.replace(tzinfo=UTC)},
    {"$lt": datetime.min.replace(tzinfo=UTC)},
)
#: The filter of resources this version can read.
READABLE: Final[dict[str, Any]] = {
    "$jsonSchema": SHAPE,
    "$nor": [{path: beyond} for path in _TIMES for beyond in _BEYOND],
}
#: Of those in which an update of this version destroys nothing, and grants by no limit that it does
#: not know.
UNHARMED: Final[dict[str, Any]] = {
    "$nor": [
        {name: {"$elemMatch": unknown}}
        for name in ("holders", "reservations")
        for unknown in ({"expires": {"$not": {"$type": "date"}}}, {"$not": {"$type": "object"}})
    ]
    + [
        {f"{under}{name}": {"$exists": True, "$not": {"$type": shape["bsonType"]}}}
        for under in ("", "override.")
        for name, shape in _LIMITS.items()
    ]
}
#: … and of those it cannot read.
FOREIGN: Final[dict[str, Any]] = {"$nor": [READABLE]}

_BELIEVED_SECONDS: Final = 1.0
_JUDGED_MAX: Final = 10_000

_PYTHONS: Final[dict[str, type]] = {
    "string": str,
    "date": datetime,
    "int": int,
    "long": int,
    "double": float,
    "bool": bool,
    "null": NoneType,
    "array": list,
    "object": dict,
}


class Judged:
    """Resources found readable a moment ago; safe for many threads.

    The database reads a filter anew with each command, and the whole shape costs as much as the
    update it guards: it is named once a second, and between what an update could destroy.
    """

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def guard(self, name: str) -> Mapping[str, Any]:
        """Return what an update of a resource names beside it."""
        since = time.monotonic() - _BELIEVED_SECONDS
        return UNHARMED if self._at.get(name, since) > since else READABLE

    def found(self, guard: Mapping[str, Any], names: Iterable[str]) -> None:
        """Learn that a command with this guard found them."""
        if guard is READABLE:
            if len(self._at) >= _JUDGED_MAX:
                self._at.clear()
            self._at.update(dict.fromkeys(names, time.monotonic()))

    def doubt(self, name: str) -> None:
        """Learn that something of it was not as expected."""
        self._at.pop(name, None)


def fault_of(row: Mapping[str, Any]) -> str | None:
    """Return what of a stored resource this version does not know, or None."""
    return _fault(dict(row), SHAPE, "")


def unreadable(row: Mapping[str, Any]) -> Unreadable:
    """Return the error that tells it of a resource, as it is stored."""
    return Unreadable(
        str(row.get("_id")), fault_of(row) or "of another shape", what="capacity resource"
    )


def has_entry(document: Document, nonce: str) -> bool:
    """Tell whether the history of a resource has the entry of this change."""
    return any(entry.get("id") == nonce for entry in document.get("history", []))


def state_of(row: Document) -> ResourceState:
    """Return a resource as a command answered it whose guard let it through (`Judged`).

    Nothing is looked at once more, on the path of each step.
    Raises: TypeError, ValueError, KeyError, AttributeError: it has changed its shape since.
    """
    override = row.get("override") or {}
    concurrency = row.get("max_concurrency")
    return ResourceState(
        name=row["_id"],
        now=row["seen_at"],
        revision=int(row["revision"]),
        max_concurrency=None if concurrency is None else int(concurrency),
        max_starts_per_second=row.get("max_starts_per_second"),
        paused=row["paused"],
        cooldown_until=row.get("cooldown_until"),
        override_until=override.get("until"),
        holders=tuple(
            Held(owner=PermitOwner(**h["owner"]), since=h["since"], expires=h["expires"])
            for h in row["holders"]
        ),
        reserved=tuple(r["workflow_id"] for r in row["reservations"]),
        gathering=tuple(r["workflow_id"] for r in row["reservations"] if r.get("gathers")),
        handed=tuple(row.get("handed", ())),
        starts=tuple(row["starts"]),
        line=int(row["line"]),
        queued=int(row["queued"]),
        hold_ms=row.get("hold_ms"),
        granted=int(row["granted"]),
        refused=int(row["refused"]),
        history=tuple(from_stored(row.get("history") or [])[-limits.LIMIT_CHANGES_KEPT :]),
    )


def _fault(value: Any, shape: Shape, path: str) -> str | None:
    """Return the first thing that is wrong with a value, judged as the database judges it."""
    named = shape["bsonType"]
    types = [named] if isinstance(named, str) else named
    if not any(_is(value, kind) for kind in types):
        return f"{path}: a {type(value).__name__}, not {' or '.join(types)}"
    if isinstance(value, list) and "items" in shape:
        items = enumerate(value)
        return _first(_fault(each, shape["items"], _under(path, at)) for at, each in items)
    if isinstance(value, dict):
        return _fault_of_record(value, shape, path)
    if isinstance(value, int | float) and not _is_between(value, shape):
        return f"{path}: {value} is out of its bounds"
    return None


def _fault_of_record(value: dict[str, Any], shape: Shape, path: str) -> str | None:
    properties: Mapping[str, Shape] = shape.get("properties", {})
    if missing := [name for name in shape.get("required", ()) if name not in value]:
        return f"{_under(path, missing[0])}: it is missing"
    if not shape.get("additionalProperties", True) and (more := sorted(value.keys() - properties)):
        return f"{_under(path, more[0])}: it is unknown here"
    known = (name for name in properties if name in value)
    return _first(_fault(value[name], properties[name], _under(path, name)) for name in known)


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _PYTHONS[kind]) and (kind == "bool") == isinstance(value, bool)


def _is_between(value: float, shape: Shape) -> bool:
    # As the database orders them, what is no number is below every bound.
    return not ("minimum" in shape and not value >= shape["minimum"]) and not (
        "maximum" in shape and not value <= shape["maximum"]
    )


def _under(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _first(faults: Any) -> str | None:
    return next((fault for fault in faults if fault), None)
