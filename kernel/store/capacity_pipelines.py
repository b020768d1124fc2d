"""The updates of a resource document, as stages on the database's clock (design 2.5).

Guarantees that each judges by the rules of `kernel.protocol.resources`, for a whole group of owners
in order, on a document from which `dropped` has removed what is over (holders, reservations, an
override). What was granted is read from the document afterwards: an owner is among its holders, or
not. Leaves to others: which stages make one update (`kernel.store.exchanging`), and sending it
(`kernel.store.capacity`).

Fields: `holders` [{owner: {workflow_id, step, token}, since, expires}], `reservations`
[{workflow_id, expires, gathers?}], `handed` (who got a place by the last update to keep some),
`starts` [times, newest last, no two equal], `line`, `queued` (about how many wait), `hold_ms`
(about how long a permit is held), limits, `override` {until, the limits it falls back to, and
in `sooner` when one of them does so before `until`},
`limits_changed_at` (when a limit was set, or an override found to be over: every start up to then
was granted by other limits), counters, `history`, `revision` (raised by people's changes only).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kernel import limits
from kernel.protocol.resources import PermitOwner
from kernel.store.capacity_rules import (
    LIMITS,
    Expr,
    after_starts,
    below,
    end_of,
    in_rate,
    is_open,
    is_overridden,
    kept,
    let,
    or_before,
    renewed_in,
    unexpired,
    without,
)
from kernel.store.clock import StoreClock

Pipeline = list[dict[str, Any]]

#: What has just run out may still be renewed, if nobody took its place.
_LONG_OVER_MS: Final = 60_000
#: How much the newest holding time counts in the estimate.
_NEWEST_SHARE: Final = 0.2


def owner_record(owner: PermitOwner) -> dict[str, Any]:
    """Return an owner as it is stored; the order of its fields is part of its equality."""
    return {"workflow_id": owner.workflow_id, "step": owner.step, "token": owner.token}


def dropped(clock: StoreClock) -> Pipeline:
    """Return the stages an update begins with: defaults, and what is over is gone."""
    now = clock.now()
    is_over = {
        "$and": [
            {"$eq": [{"$type": "$override.until"}, "date"]},
            {"$lte": ["$override.until", now]},
        ]
    }
    falls_back = {
        name: {"$and": [is_overridden(name), {"$lte": [end_of(name), now]}]} for name in LIMITS
    }
    changes = {"$or": [is_over, *falls_back.values()]}
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
                "holders": unexpired("$holders", now),
                "reservations": unexpired("$reservations", now),
                **{name: or_before(name, falls_back[name]) for name in LIMITS},
                "override": {"$cond": [is_over, None, {"$ifNull": ["$override", None]}]},
                "limits_changed_at": {"$cond": [changes, after_starts(now), "$limits_changed_at"]},
            }
        }
    ]


def has_over(clock: StoreClock) -> Expr:
    """Return the condition that something ran out long ago and is still kept."""
    kept = [{"$ifNull": [f"${name}.expires", []]} for name in ("holders", "reservations")]
    is_over = {"$lte": ["$$this", clock.now(-_LONG_OVER_MS)]}
    return {
        "$anyElementTrue": [{"$map": {"input": {"$concatArrays": kept}, "in": is_over}}],
    }


def acquired(owners: Sequence[PermitOwner], clock: StoreClock, *, lease_ms: int) -> Pipeline:
    """Grant or refuse each owner in order.

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
    return [{"$set": {"call": call}}, {"$set": after}, {"$unset": "call"}]


def _answered(clock: StoreClock, lease_ms: int) -> Expr:
    """Return the state of a group's call after one more owner ($$this) was granted or refused."""
    now, expires = clock.now(), clock.now(lease_ms)
    in_line = {"$or": [{"$gt": ["$line", 0]}, {"$gt": ["$$v.refused", 0]}]}
    has_reservation = {"$in": ["$$o.workflow_id", "$$v.reservations.workflow_id"]}
    taken = {"$add": [{"$size": "$$v.holders"}, {"$size": "$$rest"}]}
    is_granted = {
        "$and": [
            is_open(now),
            {"$or": [{"$not": [in_line]}, has_reservation]},
            below(taken),
            in_rate("$$v.starts", "$$at", 0),
        ]
    }
    held = {"owner": "$$o", "since": "$$at", "expires": expires}
    granted = {
        "holders": {"$concatArrays": ["$$v.holders", [held]]},
        "starts": kept({"$concatArrays": ["$$v.starts", ["$$at"]]}),
        "reservations": "$$rest",
        "granted": {"$add": ["$$v.granted", 1]},
    }
    refused = {"reservations": "$$rest", "refused": {"$add": ["$$v.refused", 1]}}
    renewed = {"holders": renewed_in("$$v.holders", {"$eq": ["$$h.owner", "$$o"]}, expires)}
    changes = {
        "$cond": [
            {"$in": ["$$o", "$$v.holders.owner"]},
            renewed,
            {"$cond": [is_granted, granted, refused]},
        ]
    }
    # No two starts at one moment, and none before one that another command has written.
    start = {"$max": [now, {"$add": [{"$last": "$$v.starts"}, 1]}]}
    rest = without("$$v.reservations", {"$eq": ["$$r.workflow_id", "$$o.workflow_id"]})
    decided = let({"at": start, "rest": rest}, {"$mergeObjects": ["$$v", changes]})
    return let({"v": "$$value", "o": "$$this"}, decided)


def refused_before(count: int) -> dict[str, Any]:
    """Return the stage that counts refusals nobody asked this document for."""
    total = {"$add": ["$refused", count]}
    return {"$set": {"refused": total, "line": total, "queued": {"$add": ["$queued", count]}}}


def released(owners: Sequence[PermitOwner], clock: StoreClock, *, unused: bool = False) -> Pipeline:
    """Take owners out; others' permits stay, whoever is late. `unused` gives the starts back."""
    records = {"$literal": [owner_record(owner) for owner in owners]}
    gone = {"$filter": {"input": "$holders", "as": "h", "cond": {"$in": ["$$h.owner", records]}}}
    after: dict[str, Expr] = {"holders": without("$holders", {"$in": ["$$r.owner", records]})}
    if unused:
        after["starts"] = without("$starts", {"$in": ["$$r", "$call.since"]})
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
    return [{"$set": {"call": gone}}, {"$set": after}, {"$unset": "call"}]


def passed(
    offers: Sequence[Sequence[PermitOwner]], clock: StoreClock, *, lease_ms: int
) -> Pipeline:
    """Grant a permit to one owner of each offer, the first whose workflow has no place yet.

    For claims that are about to be taken: they are in line, so the line does not hold them back.
    """
    flat = [
        {"offer": number, "owner": owner_record(owner)}
        for number, owners in enumerate(offers)
        for owner in owners
    ]
    call = {
        "$reduce": {
            "input": {"$literal": flat},
            "initialValue": {"holders": "$holders", "starts": "$starts", "given": []},
            "in": _taken_up(clock, lease_ms),
        }
    }
    count = {"$size": "$call.given"}
    after = {
        "holders": "$call.holders",
        "starts": "$call.starts",
        "granted": {"$add": ["$granted", count]},
        "queued": {"$max": [0, {"$subtract": ["$queued", count]}]},
    }
    return [{"$set": {"call": call}}, {"$set": after}, {"$unset": "call"}]


def _taken_up(clock: StoreClock, lease_ms: int) -> Expr:
    """Return the state of a group's offers after one more owner ($$this) was looked at."""
    now, kept_for = clock.now(), lease_ms + 1000 * limits.PASSING_SECONDS
    held = {"owner": "$$o.owner", "since": "$$at", "expires": clock.now(kept_for)}
    has_place = {
        "$or": [
            {"$in": ["$$o.owner.workflow_id", "$$v.holders.owner.workflow_id"]},
            {"$in": ["$$o.owner.workflow_id", "$reservations.workflow_id"]},
        ]
    }
    ahead = {"$size": "$reservations"}
    is_granted = {
        "$and": [
            {"$not": [{"$in": ["$$o.offer", "$$v.given"]}]},
            {"$not": [has_place]},
            is_open(now),
            below({"$add": [{"$size": "$$v.holders"}, ahead]}),
            in_rate("$$v.starts", "$$at", ahead),
        ]
    }
    granted = {
        "holders": {"$concatArrays": ["$$v.holders", [held]]},
        "starts": kept({"$concatArrays": ["$$v.starts", ["$$at"]]}),
        "given": {"$concatArrays": ["$$v.given", ["$$o.offer"]]},
    }
    start = {"$max": [now, {"$add": [{"$last": "$$v.starts"}, 1]}]}
    decided = let({"at": start}, {"$cond": [is_granted, granted, "$$v"]})
    return let({"v": "$$value", "o": "$$this"}, decided)


def reserved(
    workflow_ids: Sequence[str],
    clock: StoreClock,
    *,
    most: int | None = None,
    for_waiters: bool = True,
) -> Pipeline:
    """Keep a place for each workflow in order, as far as they go; whoever has one keeps it on.

    At most `most` get one who had none. `for_waiters`: who holds a permit by now has been handed on
    to since the line was read; a place kept for it would stand idle until it runs out.
    """
    now = clock.now()
    record = {"workflow_id": "$$this", "expires": clock.now(1000 * limits.RESERVATION_SECONDS)}
    taken = {"$add": [{"$size": "$holders"}, {"$size": "$$value"}]}
    is_wanted: Expr = True
    if most is not None:
        new = {"$subtract": [{"$size": "$$value"}, {"$size": "$reservations"}]}
        is_wanted = {"$lt": [new, most]}
    is_waiter: Expr = {"$not": [{"$in": ["$$this", "$holders.owner.workflow_id"]}]}
    has_place = {
        "$and": [
            is_wanted,
            *([is_waiter] if for_waiters else []),
            is_open(now),
            below(taken),
            in_rate("$starts", now, {"$size": "$$value"}),
        ]
    }
    longer = {"$mergeObjects": ["$$r", {"expires": {"$max": ["$$r.expires", record["expires"]]}}]}
    kept_on = {"$cond": [{"$eq": ["$$r.workflow_id", "$$w"]}, longer, "$$r"]}
    # As a variable: `$$this` of the inner expressions would be another one.
    each = {
        "$cond": [
            {"$in": ["$$this", "$$value.workflow_id"]},
            let({"w": "$$this"}, {"$map": {"input": "$$value", "as": "r", "in": kept_on}}),
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


def gathered(workflow_id: str, clock: StoreClock, *, for_ms: int) -> Pipeline:
    """Keep a place for one that has to wait for another resource, if it is the only such one."""
    now, mine = clock.now(), {"$in": [workflow_id, "$reservations.workflow_id"]}
    is_other = {"$and": [{"$eq": ["$$r.gathers", True]}, {"$ne": ["$$r.workflow_id", workflow_id]}]}
    others = {"$filter": {"input": "$reservations", "as": "r", "cond": is_other}}
    ahead = {"$size": "$reservations"}
    has_place = {
        "$and": [
            is_open(now),
            below({"$add": [{"$size": "$holders"}, ahead]}),
            in_rate("$starts", now, ahead),
        ]
    }
    record = {"workflow_id": workflow_id, "expires": clock.now(for_ms), "gathers": True}
    rest = without("$reservations", {"$eq": ["$$r.workflow_id", workflow_id]})
    is_kept = {"$and": [{"$eq": [others, []]}, {"$or": [mine, has_place]}]}
    after = {"$cond": [is_kept, {"$concatArrays": [rest, [record]]}, "$reservations"]}
    return [{"$set": {"reservations": after}}]


def renewed(tokens: Sequence[str], clock: StoreClock, *, lease_ms: int) -> Pipeline:
    """Extend the permits of claims; one whose place nobody took meanwhile is still theirs."""
    mine = {"$in": ["$$h.owner.token", {"$literal": list(tokens)}]}
    return [{"$set": {"holders": renewed_in("$holders", mine, clock.now(lease_ms))}}]
