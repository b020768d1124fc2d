"""Evaluate a commit on a document in memory, as the database does (pure).

The holder of a claim is the only writer of its instance, so after a commit it knows the new state
without reading it back. Only times differ, by the few milliseconds between two readings of one
clock; nothing that is written later depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never

from kernel.protocol.commit import Commit
from kernel.protocol.expressions import (
    Add,
    Changes,
    Earliest,
    Expression,
    FieldValue,
    Json,
    Lit,
    Now,
    Push,
    Record,
    Span,
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
    values = {path: _evaluate(expr, document, path, now) for path, expr in changes.items()}
    result = document
    for path, value in values.items():
        result = _with(result, path.split("."), value)
    return result


class _Missing:
    """The value of a field that is not there."""


_MISSING = _Missing()


def _evaluate(expr: Expression, document: Document, path: str, now: datetime) -> Any:  # noqa: C901
    match expr:
        case Lit(value) | Json(value):
            return value
        case Now(plus_ms):
            return now + timedelta(milliseconds=plus_ms)
        case FieldValue(other):
            return _get(document, other)
        case Span():
            return _span(expr, document, now)
        case Add(amount):
            present = _get(document, path)
            step = _span(amount, document, now) if isinstance(amount, Span) else amount
            return step if isinstance(present, _Missing) or present is None else present + step
        case Record(fields):
            values = {key: _evaluate(item, document, path, now) for key, item in fields.items()}
            return {key: value for key, value in values.items() if not isinstance(value, _Missing)}
        case Push(item, keep):
            return [*_list(document, path), _evaluate(item, document, path, now)][-keep:]
        case WithoutSteps(steps):
            return [record for record in _list(document, path) if record["step"] not in steps]
        case Earliest(paths):
            times = list(_times(document, paths))
            return max(now, min(times)) if times else now
        case Unset():
            return _MISSING
    assert_never(expr)


def _span(span: Span, document: Document, now: datetime) -> int:
    starts = list(_times(document, span.start))
    ends = list(_times(document, (span.end,) if span.end else ()))
    if not starts:
        return 0
    length = min([now, *ends]) - max(starts)
    return max(0, int(length / timedelta(milliseconds=1)))


def _times(document: Document, paths: Iterable[str]) -> Iterable[datetime]:
    for path in paths:
        value = _get(document, path)
        if isinstance(value, datetime):
            yield value


def _list(document: Document, path: str) -> list[Any]:
    value = _get(document, path)
    return value if isinstance(value, list) else []


def _get(document: Document, path: str) -> Any:
    value: Any = document
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _with(document: Mapping[str, Any], parts: list[str], value: Any) -> Document:
    copy = dict(document)
    head, *rest = parts
    if rest:
        inner = copy.get(head)
        copy[head] = _with(inner if isinstance(inner, Mapping) else {}, rest, value)
    elif isinstance(value, _Missing):
        copy.pop(head, None)
    else:
        copy[head] = value
    return copy
