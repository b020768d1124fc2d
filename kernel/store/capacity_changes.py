"""What people change of a resource, as update stages: limits, pause, cooldown, their history.

Every change is guarded by the revision its author saw (if they say so), raises it, and is kept with
its author and reason. A nonce in the history tells afterwards whether it was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel import limits
from kernel.store.capacity_rules import LIMITS, after_starts, end_of, is_overridden
from kernel.store.clock import StoreClock


def limits_changed(
    values: Mapping[str, object], clock: StoreClock, *, expires_ms: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields to set and the change to remember.

    An override falls back to what held before any override of that limit; a change for good ends
    the override of the limits it names. What is not named stays, and so does the end of its
    override, if it is under one. `until` is the later of two ends, the other stands in `sooner`.
    `limits_changed_at` is outside the history, from which other changes push it out in time.
    """
    is_override = {"$eq": [{"$type": "$override.until"}, "date"]}
    before = {name: {"$cond": [is_override, f"$override.{name}", f"${name}"]} for name in LIMITS}
    change: dict[str, Any] = {name: {"$literal": value} for name, value in values.items()}
    dated = {**change, "limits_changed_at": after_starts(clock.now())}
    until = None if expires_ms is None else clock.now(expires_ms)
    ends: dict[str, Any] = {
        name: until if name in values else {"$cond": [is_overridden(name), end_of(name), None]}
        for name in LIMITS
    }
    last = {"$max": list(ends.values())}
    sooner = {
        name: {"$cond": [{"$lt": [{"$ifNull": [end, last]}, last]}, end, "$$REMOVE"]}
        for name, end in ends.items()
    }
    override = {"until": last, **before, "sooner": sooner}
    if until is not None:
        return {**dated, "override": override}, change | {"override_until": until}
    kept = {"$cond": [{"$eq": [last, None]}, None, override | change]}
    return {**dated, "override": kept}, change


def cooled(clock: StoreClock, *, for_ms: int) -> dict[str, Any]:
    """Return the field that closes a resource for a while, or opens it (0)."""
    until: Any = {"$max": ["$cooldown_until", clock.now(for_ms)]} if for_ms else None
    return {"cooldown_until": until}


def cooled_by_worker(
    clock: StoreClock, *, for_ms: int, by: str, reason: str
) -> list[dict[str, Any]]:
    """Return the stage of a cooldown an activity asked for.

    One that finds another in force is not remembered: a burst of refusals from outside must not
    push people's changes out of the history, nor move the revision under their hands.
    """
    until = cooled(clock, for_ms=for_ms)["cooldown_until"]
    now = clock.now()
    is_new = {"$lte": [{"$ifNull": ["$cooldown_until", now]}, now]}
    remembered = entry(clock, "", {"cooldown_until": until}, by=by, reason=reason)
    return [
        {
            "$set": {
                "cooldown_until": until,
                "history": {"$cond": [is_new, _grown(remembered), _history()]},
                "revision": {"$cond": [is_new, {"$add": ["$revision", 1]}, "$revision"]},
            }
        }
    ]


def entry(
    clock: StoreClock, nonce: str, change: Mapping[str, Any], *, by: str, reason: str
) -> dict[str, Any]:
    """Return an entry of the history."""
    return {
        "id": {"$literal": nonce},
        "at": after_starts(clock.now()),
        "by": {"$literal": by},
        "reason": {"$literal": reason},
        "change": dict(change),
    }


def guarded(
    fields: Mapping[str, Any], remembered: Mapping[str, Any], *, if_revision: int | None
) -> dict[str, Any]:
    """Return the stage that changes fields if the resource is still at the revision seen."""
    is_seen: Any = True if if_revision is None else {"$eq": ["$revision", if_revision]}

    def only_if_seen(value: Any, otherwise: Any) -> dict[str, Any]:
        return {"$cond": [is_seen, value, otherwise]}

    return {
        "$set": {
            **{
                name: only_if_seen(value, {"$ifNull": [f"${name}", None]})
                for name, value in fields.items()
            },
            "revision": only_if_seen({"$add": ["$revision", 1]}, "$revision"),
            "history": only_if_seen(_grown(remembered), _history()),
        }
    }


def _history() -> dict[str, Any]:
    return {"$ifNull": ["$history", []]}


def _grown(remembered: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "$slice": [
            {"$concatArrays": [_history(), [dict(remembered)]]},
            -limits.LIMIT_CHANGES_KEPT,
        ]
    }
