"""What must hold of one capacity resource, read together with the claims it names (pure).

Guarantees that a resource which the kernel wrote has no finding while tick and reconcile run: what
a death leaves (a permit, a reservation, a line) is told only when nobody has looked for longer than
reconciliation takes. Leaves granting to `kernel.store.capacity`, freeing to reconcile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kernel import limits
from kernel.protocol.resources import rate_window
from kernel.store.reading_resources import ResourceRead
from kernel.store.resource_documents import fault_of
from kernel.verifying.finding import Finding
from kernel.verifying.signals import SETTLED_AFTER

#: The number under which findings of resources are told: limits are design 2.5, not 1.6.
LIMITS: Final = 11
_Fact = tuple[int, str]


def of_resource(read: ResourceRead) -> list[Finding]:
    """Return what contradicts the protocol in one resource."""
    try:
        facts = [
            *_of_numbers(read.row),
            *_of_holders(read),
            *_of_limit(read),
            *_of_reservations(read),
            *_of_line(read),
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        facts = [(8, f"cannot be read: {type(exc).__name__}: {exc}")]
    if not facts and (fault := fault_of(read.row)):
        facts = [(8, f"cannot be read: {fault}")]
    return [Finding(subject=read.name, invariant=number, fact=fact) for number, fact in facts]


def _of_numbers(row: Mapping[str, Any]) -> Iterator[_Fact]:
    counts = ("granted", "refused", "line", "queued", "revision")
    below = [name for name in counts if row.get(name, 0) < 0]
    if below:
        yield LIMITS, f"counts below zero: {', '.join(below)}"
    if row.get("line", 0) > max(1, row.get("refused", 0)):
        yield LIMITS, f"its line is {row['line']}, later than the last of {row['refused']} refusals"
    if row.get("revision", 0) < len(row.get("history") or ()):
        yield LIMITS, f"{len(row['history'])} changes are kept of {row['revision']}"
    if row.get("granted", 0) < len(row.get("holders") or ()):
        yield LIMITS, f"{len(row['holders'])} hold a permit and {row['granted']} were granted"
    most, rate = row.get("max_concurrency"), row.get("max_starts_per_second")
    if most is not None and not 0 < most <= limits.CONCURRENCY_MAX:
        yield LIMITS, f"max_concurrency is {most}"
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        yield LIMITS, f"max_starts_per_second is {rate}"
    starts = row.get("starts") or []
    if not isinstance(starts, list):
        raise TypeError(f"starts are {starts!r}")
    if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
        yield LIMITS, "its starts are not in order, or two are one"


def _of_holders(read: ResourceRead) -> Iterator[_Fact]:
    seen = set()
    for held in read.row.get("holders") or ():
        owner = held["owner"]
        workflow_id, step, token = owner["workflow_id"], owner["step"], owner["token"]
        if (workflow_id, step, token) in seen:
            yield LIMITS, f"{workflow_id} holds two permits for {step or 'itself'}"
        seen.add((workflow_id, step, token))
        if _is_long_ago(held["expires"], read.now):
            yield LIMITS, f"the permit of {workflow_id} ran out at {held['expires']}, nobody frees"
            continue
        claim = read.claims.get(workflow_id)
        if claim is None:
            ended = held["since"]
        elif claim.token != token:
            ended = max(claim.updated_at, held["since"])
        else:
            continue
        if held["expires"] > read.now and _is_long_ago(ended, read.now):
            yield 4, f"{workflow_id} holds a permit by a claim that is no more, since {ended}"


def _of_limit(read: ResourceRead) -> Iterator[_Fact]:
    """More than the limit hold a permit, and the newest was granted by this very limit.

    Whoever holds more since before `limits_changed_at` was granted by other limits. An override
    that is over is dropped, and dated, by the next update: until then all holders predate its end,
    and its own limit is the one they were granted by.
    """
    row = read.row
    most, changed = row.get("max_concurrency"), row.get("limits_changed_at")
    living = [held["since"] for held in row.get("holders") or () if held["expires"] > read.now]
    if most is None or changed is None or len(living) <= max(0, most):
        return
    if (newest := max(living)) > changed:
        yield LIMITS, f"{len(living)} hold a permit, the last since {newest}, of {most}"


def _of_reservations(read: ResourceRead) -> Iterator[_Fact]:
    for kept in read.row.get("reservations") or ():
        if _is_long_ago(kept["expires"], read.now):
            yield LIMITS, f"a place kept for {kept['workflow_id']} ran out at {kept['expires']}"


def _of_line(read: ResourceRead) -> Iterator[_Fact]:
    """Somebody waits and there is room, or nobody does and the line says so, for long."""
    row = read.row
    written = row.get("seen_at")
    if not row.get("line") or written is None or not _is_long_ago(written, read.now):
        return
    if not _has_room(row, read.now):
        return
    if read.standing:
        yield LIMITS, f"somebody waits, there is room, and nobody handed it on since {written}"
    else:
        yield LIMITS, f"it says since {written} that somebody waits, and nobody does"


def _has_room(row: Mapping[str, Any], now: datetime) -> bool:
    closed_until = row.get("cooldown_until")
    if row.get("paused") or (closed_until is not None and closed_until > now):
        return False
    most, rate = (
        _in_force(row, "max_concurrency", now),
        _in_force(row, "max_starts_per_second", now),
    )
    taken = [*(row.get("holders") or ()), *(row.get("reservations") or ())]
    if most is not None and sum(one["expires"] > now for one in taken) >= most:
        return False
    if rate is None:
        return True
    count, window = rate_window(rate)
    return sum(1 for start in row.get("starts") or () if start >= now - window) < count


def _in_force(row: Mapping[str, Any], name: str, now: datetime) -> Any:
    override = row.get("override") or {}
    end = (override.get("sooner") or {}).get(name, override.get("until"))
    return (row if end is None or end > now else override).get(name)


def _is_long_ago(moment: datetime, now: datetime) -> bool:
    return now - moment >= SETTLED_AFTER
