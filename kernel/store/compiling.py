"""Commits as MongoDB updates: guards become filters, expressions become pipeline stages.

Every value somebody handed in is wrapped in `$literal`, so that no text of a user is ever read as
an operator or a field path.

Guarantees the same effect as `kernel.protocol.apply` has in memory. Leaves to others: sending it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kernel.protocol.commit import UNCLAIMED, Commit, Guard
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
from kernel.protocol.starting import FIRST_REVISION
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
    return {path: _COMPILE[type(expr)](expr, path, clock) for path, expr in changes.items()}


def compile_begins(begins: Mapping[str, Changes], clock: StoreClock) -> Pipeline:
    """Return the stage that begins the first wave of an untouched instance; empty if none may.

    `begins` maps a definition's fingerprint to changes of steps.
    """
    branches = [
        {
            "case": {
                "$and": [
                    {"$eq": ["$revision", FIRST_REVISION]},
                    {"$eq": ["$definition_fingerprint", fingerprint]},
                ]
            },
            "then": _merged("steps", _tree(compile_changes(changes, clock))["steps"]),
        }
        for fingerprint, changes in begins.items()
    ]
    if not branches:
        return []
    return [{"$set": {"steps": {"$switch": {"branches": branches, "default": "$steps"}}}}]


class _Node(dict[str, Any]):
    """A subdocument that is merged into the one that is there."""


def _tree(compiled: Mapping[str, Any]) -> _Node:
    """Return dotted paths as nested nodes."""
    root = _Node()
    for path, value in compiled.items():
        *parents, name = path.split(".")
        node = root
        for parent in parents:
            node = node.setdefault(parent, _Node())
        node[name] = value
    return root


def _merged(path: str, node: _Node) -> Expr:
    fields = {
        name: _merged(f"{path}.{name}", value) if isinstance(value, _Node) else value
        for name, value in node.items()
    }
    return {"$mergeObjects": [f"${path}", fields]}


def _literal(expr: Lit, _path: str, _clock: StoreClock) -> Expr:
    return {"$literal": expr.value}


def _json(expr: Json, _path: str, _clock: StoreClock) -> Expr:
    return {"$literal": to_stored(expr.value)}


def _now(expr: Now, _path: str, clock: StoreClock) -> Expr:
    return clock.now(expr.plus_ms)


def _field(expr: FieldValue, _path: str, _clock: StoreClock) -> Expr:
    return f"${expr.path}"


def _add(expr: Add, path: str, clock: StoreClock) -> Expr:
    amount = expr.amount
    step = amount if isinstance(amount, int) else _span(amount, path, clock)
    return {"$add": [{"$ifNull": [f"${path}", 0]}, step]}


def _record(expr: Record, path: str, clock: StoreClock) -> Expr:
    fields = expr.fields.items()
    # A bare document would be merged into the record that is there already.
    return {
        "$mergeObjects": [{key: _COMPILE[type(item)](item, path, clock) for key, item in fields}]
    }


def _push(expr: Push, path: str, clock: StoreClock) -> Expr:
    item = _COMPILE[type(expr.item)](expr.item, path, clock)
    return {"$slice": [{"$concatArrays": [_list(path), [item]]}, -expr.keep]}


def _without(expr: WithoutSteps, path: str, _clock: StoreClock) -> Expr:
    keep_it = {"$not": [{"$in": ["$$this.step", {"$literal": list(expr.steps)}]}]}
    return {"$filter": {"input": _list(path), "cond": keep_it}}


def _earliest(expr: Earliest, _path: str, clock: StoreClock) -> Expr:
    return {"$max": [clock.now(), {"$min": [f"${path}" for path in expr.paths]}]}


def _latest(expr: Latest, _path: str, _clock: StoreClock) -> Expr:
    return {"$max": [f"${path}" for path in expr.paths]}


def _token(expr: TokenUnder, _path: str, _clock: StoreClock) -> Expr:
    start = {"$max": [0, {"$subtract": [{"$strLenCP": "$workflow_id"}, TOKEN_TAIL]}]}
    tail = {"$substrCP": ["$workflow_id", start, TOKEN_TAIL]}
    return {"$concat": [{"$literal": expr.seal}, tail]}


def _unset(_expr: Unset, _path: str, _clock: StoreClock) -> Expr:
    return "$$REMOVE"


def _list(path: str) -> Expr:
    return {"$ifNull": [f"${path}", []]}


def _span(expr: Span, _path: str, clock: StoreClock) -> Expr:
    """Whole milliseconds between two moments, zero where the order or a start is missing."""
    start = {"$max": [f"${path}" for path in expr.start]}
    ends = [clock.now(), f"${expr.end}"] if expr.end else [clock.now()]
    length = {"$subtract": [{"$min": ends}, start]}
    return {"$max": [0, {"$ifNull": [length, 0]}]}


_Compile = Callable[[Any, str, StoreClock], Expr]
_COMPILE: Final[dict[type[Expression], _Compile]] = {
    Lit: _literal,
    Json: _json,
    Now: _now,
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
