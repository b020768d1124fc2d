"""Evaluate a commit on a document in memory, as the database does (pure).

The holder of a claim is the only writer of its instance, so after a commit it knows the new state
without reading it back. Only times differ, by the few milliseconds between two readings of one
clock; nothing that is written later depends on them.

Guarantees that the given document is left alone: what a stage touches is copied once, the rest is
shared. Leaves to others: what a database makes of the same expressions (`kernel.store.compiling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from kernel.model import WorkflowInstance
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import (
    TOKEN_TAIL,
    Add,
    Changes,
    Earliest,
    Expression,
    FieldValue,
    Json,
    Latest,
    Lit,
    Now,
    Push,
    Record,
    Span,
    TokenUnder,
    Unset,
    WithoutSteps,
)

Document = dict[str, Any]


def apply_commit(document: Document, commit: Commit, now: datetime) -> Document:
    """Return the document as it is after `commit`; the given one is left alone."""
    for stage in commit.stages:
        document = apply_changes(document, stage, now)
    return document


def apply_changes(document: Document, changes: Changes, now: datetime) -> Document:
    """Return the document after one stage: every expression sees the state before it."""
    values = [
        (path, _EVALUATE[type(expr)](expr, document, path, now)) for path, expr in changes.items()
    ]
    result = dict(document)
    ours: dict[tuple[str, ...], Document] = {(): result}
    for path, value in values:
        parts = _parts(path)
        parent = _own(ours, parts[:-1])
        if value is _MISSING:
            parent.pop(parts[-1], None)
        else:
            parent[parts[-1]] = value
            ours.pop(parts, None)  # replaced whole: what was copied there counts no more
    return result


def typed_after(instance: WorkflowInstance, before: Document, after: Document) -> WorkflowInstance:
    """Return the typed value of `after`, taking over the steps that `before` shares with it.

    `instance` is the typed value of `before`. Typing a step costs more than everything else that
    is made of it in memory, and most steps are untouched by most commits.
    """
    known, raw = instance.steps, before["steps"]
    steps = {
        name: known[name] if step is raw.get(name) else step
        for name, step in after["steps"].items()
    }
    return WorkflowInstance.model_validate({**after, "steps": steps})


class _Missing:
    """The value of a field that is not there."""


_MISSING: Final = _Missing()


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _own(ours: dict[tuple[str, ...], Document], parts: tuple[str, ...]) -> Document:
    """Return the subdocument at `parts`, copied when it is touched for the first time."""
    found = ours.get(parts)
    if found is None:
        parent = _own(ours, parts[:-1])
        inner = parent.get(parts[-1])
        found = ours[parts] = dict(inner) if isinstance(inner, dict) else {}
        parent[parts[-1]] = found
    return found


def _get(document: Document, path: str) -> Any:
    value: Any = document
    for part in _parts(path):
        if not isinstance(value, dict):
            return _MISSING
        value = value.get(part, _MISSING)
    return value


def _constant(expr: Lit | Json, _document: Document, _path: str, _now: datetime) -> Any:
    return expr.value


def _moment(expr: Now, _document: Document, _path: str, now: datetime) -> datetime:
    return now + timedelta(milliseconds=expr.plus_ms) if expr.plus_ms else now


def _field(expr: FieldValue, document: Document, _path: str, _now: datetime) -> Any:
    return _get(document, expr.path)


def _add(expr: Add, document: Document, path: str, now: datetime) -> Any:
    present, amount = _get(document, path), expr.amount
    step = amount if isinstance(amount, int) else _span(amount, document, path, now)
    return step if present is _MISSING or present is None else present + step


def _record(expr: Record, document: Document, path: str, now: datetime) -> Document:
    values = {
        key: _EVALUATE[type(item)](item, document, path, now) for key, item in expr.fields.items()
    }
    return {key: value for key, value in values.items() if value is not _MISSING}


def _push(expr: Push, document: Document, path: str, now: datetime) -> list[Any]:
    item = _EVALUATE[type(expr.item)](expr.item, document, path, now)
    return [*_list(document, path), item][-expr.keep :]


def _without(expr: WithoutSteps, document: Document, path: str, _now: datetime) -> list[Any]:
    return [record for record in _list(document, path) if record["step"] not in expr.steps]


def _earliest(expr: Earliest, document: Document, _path: str, now: datetime) -> datetime:
    times = _times(document, expr.paths)
    return max(now, min(times)) if times else now


def _latest(expr: Latest, document: Document, _path: str, _now: datetime) -> datetime | None:
    return max(_times(document, expr.paths), default=None)


def _token(expr: TokenUnder, document: Document, _path: str, _now: datetime) -> str:
    return expr.seal + str(document["workflow_id"])[-TOKEN_TAIL:]


def _unset(_expr: Unset, _document: Document, _path: str, _now: datetime) -> _Missing:
    return _MISSING


def _span(expr: Span, document: Document, _path: str, now: datetime) -> int:
    starts = _times(document, expr.start)
    if not starts:
        return 0
    ends = _times(document, (expr.end,)) if expr.end else []
    length = min([now, *ends]) - max(starts)
    return max(0, length // _MILLISECOND)


_MILLISECOND: Final = timedelta(milliseconds=1)


def _times(document: Document, paths: Iterable[str]) -> list[datetime]:
    values = (_get(document, path) for path in paths)
    return [value for value in values if isinstance(value, datetime)]


def _list(document: Document, path: str) -> list[Any]:
    value = _get(document, path)
    return value if isinstance(value, list) else []


_Evaluate = Callable[[Any, Document, str, datetime], Any]
_EVALUATE: Final[dict[type[Expression], _Evaluate]] = {
    Lit: _constant,
    Json: _constant,
    Now: _moment,
    FieldValue: _field,
    Add: _add,
    Record: _record,
    Push: _push,
    WithoutSteps: _without,
    Earliest: _earliest,
    Latest: _latest,
    TokenUnder: _token,
    Unset: _unset,
    Span: _span,
}
