"""Commits as MongoDB updates: guards become filters, expressions become pipeline stages.

Every value somebody handed in is wrapped in `$literal`, so that no text of a user is ever read as
an operator or a field path.
"""

from __future__ import annotations

from typing import Any, assert_never

from kernel.protocol.commit import UNCLAIMED, Commit, Guard
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
from kernel.store.clock import Expr, StoreClock
from kernel.store.codec import to_stored

Filter = dict[str, Any]
Pipeline = list[dict[str, Any]]


def compile_guard(guard: Guard) -> Filter:
    """Return the filter that is true only while the guard holds."""
    found: Filter = {
        "workflow_id": guard.workflow_id,
        "status": {"$in": [status.value for status in guard.statuses]},
    }
    if guard.claim_token is not None:
        found["claim_token"] = None if guard.claim_token == UNCLAIMED else guard.claim_token
    for step, seq in guard.step_seqs.items():
        found[f"steps.{step}.seq"] = seq
    if guard.revision is not None:
        found["revision"] = guard.revision
    if guard.fencing_token is not None:
        found["fencing_token"] = guard.fencing_token
    if guard.priority_above is not None:
        found["priority"] = {"$gt": guard.priority_above}
    return found


def compile_stages(commit: Commit, clock: StoreClock) -> Pipeline:
    """Return the update pipeline of a commit, one `$set` a stage."""
    return [{"$set": compile_changes(stage, clock)} for stage in commit.stages]


def compile_changes(changes: Changes, clock: StoreClock) -> dict[str, Any]:
    """Return the body of one `$set` stage."""
    return {path: _compile(expr, path, clock) for path, expr in changes.items()}


def _compile(expr: Expression, path: str, clock: StoreClock) -> Any:  # noqa: C901
    match expr:
        case Lit(value):
            return {"$literal": value}
        case Json(value):
            return {"$literal": to_stored(value)}
        case Now(plus_ms):
            return clock.now(plus_ms)
        case FieldValue(other):
            return f"${other}"
        case Span():
            return _span(expr, clock)
        case Add(amount):
            step = _span(amount, clock) if isinstance(amount, Span) else amount
            return {"$add": [{"$ifNull": [f"${path}", 0]}, step]}
        case Record(fields):
            record = {key: _compile(item, path, clock) for key, item in fields.items()}
            # A bare document would be merged into the record that is there already.
            return {"$mergeObjects": [record]}
        case Push(item, keep):
            grown = {"$concatArrays": [_list(path), [_compile(item, path, clock)]]}
            return {"$slice": [grown, -keep]}
        case WithoutSteps(steps):
            keep_it = {"$not": [{"$in": ["$$this.step", {"$literal": list(steps)}]}]}
            return {"$filter": {"input": _list(path), "cond": keep_it}}
        case Earliest(paths):
            return {"$max": [clock.now(), {"$min": [f"${p}" for p in paths]}]}
        case Unset():
            return "$$REMOVE"
    assert_never(expr)


def _list(path: str) -> Expr:
    return {"$ifNull": [f"${path}", []]}


def _span(span: Span, clock: StoreClock) -> Expr:
    """Whole milliseconds between two moments, zero where the order or a start is missing."""
    start = {"$max": [f"${p}" for p in span.start]}
    ends = [clock.now(), f"${span.end}"] if span.end else [clock.now()]
    length = {"$subtract": [{"$min": ends}, start]}
    return {"$max": [0, {"$ifNull": [length, 0]}]}
