"""The updates of a resource document, each one pipeline on the database's clock (design 2.5).

Guarantees that every update first drops what is over (holders, reservations, an override) and then
judges by the rules of `kernel.protocol.resources`, for a whole group of owners in order. What was
granted is read from the document afterwards: an owner is among its holders, or not. Leaves to
others: sending them (`kernel.store.capacity`).

Fields: `holders` [{owner: {workflow_id, step, token}, since, expires}], `reservations`
[{workflow_id, expires}], `handed` (who got a place by the last update that was to keep some),
`starts` [times, newest last, no two equal], `line`, `queued` (about how many wait), `hold_ms`
(about how long a permit is held), limits, `override` {until, and the limits it falls back to},
counters, `history`, `revision` (raised by people's changes only).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kernel import limits
from kernel.protocol.resources import PermitOwner
from kernel.store.clock import StoreClock

Pipeline = list[dict[str, Any]]
Expr = Any

#: Starts kept even without a rate, so that a rate set later knows what went before.
_STARTS_KEPT: Final = 32
#: How much the newest holding time counts in the estimate.
_NEWEST_SHARE: Final = 0.2

_RATE: Final = "$max_starts_per_second"
_COUNT: Final = {"$toInt": {"$ceil": {"$ifNull": [_RATE, 0]}}}
#: Milliseconds in which `_COUNT` may start; null without a rate.
_WINDOW: Final = {
    "$toLong": {"$ceil": {"$divide": [{"$multiply": [1000, {"$ceil": _RATE}]}, _RATE]}}
}


def owner_record(owner: PermitOwner) -> dict[str, Any]:
    """Return an owner as it is stored; the order of its fields is part of its equality."""
    return {"workflow_id": owner.workflow_id, "step": owner.step, "token": owner.token}


def dropped(clock: StoreClock) -> Pipeline:
    """Return the stages every update begins with: defaults, and what is over is gone."""
    now = clock.now()
    is_over = {
        "$and": [
            {"$eq": [{"$type": "$override.until"}, "date"]},
            {"$lte": ["$override.until", now]},
        ]
    }
    defaults: dict[str, Expr] = {
        name: {"$ifNull": [f"${name}", 0]}
        for name in ("line", "queued", "granted", "refused", "revision")
    }
    return [
        {
            "$set": {
                **defaults,
                "paused": {"$ifNull": ["$paused", False]},
                "starts": {"$ifNull": ["$starts", []]},
                "holders": _unexpired("$holders", now),
                "reservations": _unexpired("$reservations", now),
                "max_concurrency": _or_before("max_concurrency", is_over),
                "max_starts_per_second": _or_before("max_starts_per_second", is_over),
                "override": {"$cond": [is_over, None, {"$ifNull": ["$override", None]}]},
            }
        }
    ]


def acquired(
    owners: Sequence[PermitOwner],
    leaving: Sequence[PermitOwner],
    clock: StoreClock,
    *,
    lease_ms: int,
) -> Pipeline:
    """Grant or refuse each owner in order, after those `leaving` have gone.

    An owner that holds is renewed only. A refusal sets the line, and drops its reservation: the
    next hand-on makes a new one.
    """
    call = {
        "$reduce": {
            "input": {"$literal": [owner_record(owner) for owner in owners]},
            "initialValue": {
                "holders": "$holders",
                "starts": "$starts",
                "reservations": "$reservations",
                "granted": 0,
                "refused": 0,
            },
            "in": _answered(clock, lease_ms),
        }
    }
    total = {"$add": ["$refused", "$call.refused"]}
    after = {
        "holders": "$call.holders",
        "starts": "$call.starts",
        "reservations": "$call.reservations",
        "granted": {"$add": ["$granted", "$call.granted"]},
        "refused": total,
        "queued": {"$add": ["$queued", "$call.refused"]},
        "line": {"$cond": [{"$gt": ["$call.refused", 0]}, total, "$line"]},
    }
    return [
        *dropped(clock),
        *(released(leaving, clock)[1:] if leaving else []),
        {"$set": {"call": call}},
        {"$set": after},
        {"$unset": "call"},
    ]


def _answered(clock: StoreClock, lease_ms: int) -> Expr:
    """Return the state of a group's call after one more owner ($$this) was granted or refused."""
    now, expires = clock.now(), clock.now(lease_ms)
    in_line = {"$or": [{"$gt": ["$line", 0]}, {"$gt": ["$$v.refused", 0]}]}
    has_reservation = {"$in": ["$$o.workflow_id", "$$v.reservations.workflow_id"]}
    taken = {"$add": [{"$size": "$$v.holders"}, {"$size": "$$rest"}]}
    is_granted = {
        "$and": [
            _is_open(now),
            {"$or": [{"$not": [in_line]}, has_reservation]},
            _below(taken),
            _in_rate("$$v.starts", "$$at", 0),
        ]
    }
    held = {"owner": "$$o", "since": "$$at", "expires": expires}
    granted = {
        "holders": {"$concatArrays": ["$$v.holders", [held]]},
        "starts": _kept({"$concatArrays": ["$$v.starts", ["$$at"]]}),
        "reservations": "$$rest",
        "granted": {"$add": ["$$v.granted", 1]},
    }
    refused = {"reservations": "$$rest", "refused": {"$add": ["$$v.refused", 1]}}
    renewed = {"holders": _renewed("$$v.holders", {"$eq": ["$$h.owner", "$$o"]}, expires)}
    changes = {
        "$cond": [
            {"$in": ["$$o", "$$v.holders.owner"]},
            renewed,
            {"$cond": [is_granted, granted, refused]},
        ]
    }
    # No two starts at one moment, and none before one that another command has written.
    start = {"$max": [now, {"$add": [{"$last": "$$v.starts"}, 1]}]}
    rest = _without("$$v.reservations", {"$eq": ["$$r.workflow_id", "$$o.workflow_id"]})
    decided = _let({"at": start, "rest": rest}, {"$mergeObjects": ["$$v", changes]})
    return _let({"v": "$$value", "o": "$$this"}, decided)


def released(owners: Sequence[PermitOwner], clock: StoreClock, *, unused: bool = False) -> Pipeline:
    """Take owners out; others' permits stay, whoever is late. `unused` gives the starts back."""
    records = {"$literal": [owner_record(owner) for owner in owners]}
    gone = {"$filter": {"input": "$holders", "as": "h", "cond": {"$in": ["$$h.owner", records]}}}
    after: dict[str, Expr] = {"holders": _without("$holders", {"$in": ["$$r.owner", records]})}
    if unused:
        after["starts"] = _without("$starts", {"$in": ["$$r", "$call.since"]})
        after["granted"] = {"$subtract": ["$granted", {"$size": "$call"}]}
    else:
        held = {
            "$map": {"input": "$call", "as": "h", "in": {"$subtract": [clock.now(), "$$h.since"]}}
        }
        newest = {"$max": [0, {"$avg": held}]}
        smoothed = {
            "$add": [
                {"$multiply": [{"$ifNull": ["$hold_ms", newest]}, 1 - _NEWEST_SHARE]},
                {"$multiply": [newest, _NEWEST_SHARE]},
            ]
        }
        before = {"$ifNull": ["$hold_ms", None]}
        after["hold_ms"] = {"$cond": [{"$gt": [{"$size": "$call"}, 0]}, smoothed, before]}
    return [*dropped(clock), {"$set": {"call": gone}}, {"$set": after}, {"$unset": "call"}]


def reserved(
    workflow_ids: Sequence[str], clock: StoreClock, *, most: int | None = None
) -> Pipeline:
    """Keep a place for each workflow in order, as far as they go; whoever has one keeps it.

    At most `most` get one who had none.
    """
    now = clock.now()
    record = {"workflow_id": "$$this", "expires": clock.now(1000 * limits.RESERVATION_SECONDS)}
    taken = {"$add": [{"$size": "$holders"}, {"$size": "$$value"}]}
    is_wanted: Expr = True
    if most is not None:
        new = {"$subtract": [{"$size": "$$value"}, {"$size": "$reservations"}]}
        is_wanted = {"$lt": [new, most]}
    has_place = {
        "$and": [
            is_wanted,
            _is_open(now),
            _below(taken),
            _in_rate("$starts", now, {"$size": "$$value"}),
        ]
    }
    others = _without("$$value", {"$eq": ["$$r.workflow_id", "$$this"]})
    # As a variable: `$$this` of the inner expressions would be another one.
    each = {
        "$cond": [
            {"$in": ["$$this", "$$value.workflow_id"]},
            {"$concatArrays": [others, [record]]},
            {"$cond": [has_place, {"$concatArrays": ["$$value", [record]]}, "$$value"]},
        ]
    }
    call = {
        "$reduce": {
            "input": {"$literal": list(workflow_ids)},
            "initialValue": "$reservations",
            "in": each,
        }
    }
    new = {"$subtract": [{"$size": "$call"}, {"$size": "$reservations"}]}
    return [
        *dropped(clock),
        {"$set": {"call": call}},
        {
            "$set": {
                "queued": {"$max": [0, {"$subtract": ["$queued", new]}]},
                "handed": {"$setDifference": ["$call.workflow_id", "$reservations.workflow_id"]},
                "reservations": "$call",
            }
        },
        {"$unset": "call"},
    ]


def renewed(tokens: Sequence[str], clock: StoreClock, *, lease_ms: int) -> Pipeline:
    """Extend the permits of claims; one whose place nobody took meanwhile is still theirs."""
    mine = {"$in": ["$$h.owner.token", {"$literal": list(tokens)}]}
    return [{"$set": {"holders": _renewed("$holders", mine, clock.now(lease_ms))}}]


def _let(variables: dict[str, Expr], body: Expr) -> Expr:
    return {"$let": {"vars": variables, "in": body}}


def _unexpired(records: str, now: Expr) -> Expr:
    living = {"$gt": ["$$r.expires", now]}
    return {"$filter": {"input": {"$ifNull": [records, []]}, "as": "r", "cond": living}}


def _without(records: str, condition: Expr) -> Expr:
    return {"$filter": {"input": records, "as": "r", "cond": {"$not": [condition]}}}


def _renewed(holders: str, condition: Expr, expires: Expr) -> Expr:
    longer = {"$mergeObjects": ["$$h", {"expires": expires}]}
    return {"$map": {"input": holders, "as": "h", "in": {"$cond": [condition, longer, "$$h"]}}}


def _or_before(name: str, is_over: Expr) -> Expr:
    return {
        "$cond": [
            is_over,
            {"$ifNull": [f"$override.{name}", None]},
            {"$ifNull": [f"${name}", None]},
        ]
    }


def _is_open(now: Expr) -> Expr:
    is_warm = {"$lte": [{"$ifNull": ["$cooldown_until", now]}, now]}
    return {"$and": [{"$not": ["$paused"]}, is_warm]}


def _below(taken: Expr) -> Expr:
    is_free = {"$eq": ["$max_concurrency", None]}
    return {"$or": [is_free, {"$lt": [taken, "$max_concurrency"]}]}


def _in_rate(starts: Expr, at: Expr, ahead: Expr) -> Expr:
    """Fewer than the rate allows began in the window up to `at`, those `ahead` counted too."""
    recent = {
        "$filter": {
            "input": starts,
            "as": "s",
            "cond": {"$gte": ["$$s", {"$subtract": [at, _WINDOW]}]},
        }
    }
    fits = {"$lt": [{"$add": [{"$size": recent}, ahead]}, _COUNT]}
    return {"$cond": [{"$eq": [_RATE, None]}, True, fits]}


def _kept(starts: Expr) -> Expr:
    keep = {"$multiply": [-1, {"$max": [_STARTS_KEPT, _COUNT]}]}
    return {"$slice": [starts, keep]}
