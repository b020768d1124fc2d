"""Expressions the updates of a resource document have in common: its rules (design 2.5).

The same rules as `kernel.protocol.resources` looks with, on the same fields.
"""

from __future__ import annotations

from typing import Any, Final

Expr = Any

LIMITS: Final = ("max_concurrency", "max_starts_per_second")

#: Starts kept even without a rate, so that a rate set later knows what went before.
_STARTS_KEPT: Final = 32

_RATE: Final = "$max_starts_per_second"
_COUNT: Final = {"$toInt": {"$ceil": {"$ifNull": [_RATE, 0]}}}
#: Milliseconds in which `_COUNT` may start; null without a rate.
_WINDOW: Final = {
    "$toLong": {"$ceil": {"$divide": [{"$multiply": [1000, {"$ceil": _RATE}]}, _RATE]}}
}


def let(variables: dict[str, Expr], body: Expr) -> Expr:
    """Return an expression with variables."""
    return {"$let": {"vars": variables, "in": body}}


def unexpired(records: str, now: Expr) -> Expr:
    """Return those of a list of records that are in force."""
    living = {"$gt": ["$$r.expires", now]}
    return {"$filter": {"input": {"$ifNull": [records, []]}, "as": "r", "cond": living}}


def without(records: str, condition: Expr) -> Expr:
    """Return a list of records ($$r each) without those of a condition."""
    return {"$filter": {"input": records, "as": "r", "cond": {"$not": [condition]}}}


def renewed_in(holders: str, condition: Expr, expires: Expr) -> Expr:
    """Return holders ($$h each), those of a condition extended."""
    longer = {"$mergeObjects": ["$$h", {"expires": expires}]}
    return {"$map": {"input": holders, "as": "h", "in": {"$cond": [condition, longer, "$$h"]}}}


def or_before(name: str, is_over: Expr) -> Expr:
    """Return a limit, or what it falls back to once an override is over."""
    return {
        "$cond": [
            is_over,
            {"$ifNull": [f"$override.{name}", None]},
            {"$ifNull": [f"${name}", None]},
        ]
    }


def is_overridden(name: str) -> Expr:
    """An override is in force and this limit is not what it falls back to."""
    is_same = {"$eq": [{"$ifNull": [f"${name}", None]}, {"$ifNull": [f"$override.{name}", None]}]}
    return {"$and": [{"$eq": [{"$type": "$override.until"}, "date"]}, {"$not": [is_same]}]}


def end_of(name: str) -> Expr:
    """Return when a limit that is overridden falls back."""
    return {"$ifNull": [f"$override.sooner.{name}", "$override.until"]}


def after_starts(now: Expr) -> Expr:
    """Return the moment of a change: none that started before it is told to have started after it.

    Starts of one moment are told a millisecond apart, so that a burst runs ahead of the clock.
    """
    return {"$max": [now, {"$last": "$starts"}]}


def is_open(now: Expr) -> Expr:
    """Neither paused nor cooling down."""
    is_warm = {"$lte": [{"$ifNull": ["$cooldown_until", now]}, now]}
    return {"$and": [{"$not": ["$paused"]}, is_warm]}


def below(taken: Expr) -> Expr:
    """Another one fits below the limit of those at once."""
    is_free = {"$eq": ["$max_concurrency", None]}
    return {"$or": [is_free, {"$lt": [taken, "$max_concurrency"]}]}


def in_rate(starts: Expr, at: Expr, ahead: Expr) -> Expr:
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


def kept(starts: Expr) -> Expr:
    """Return as many of the newest starts as any rule may ask for."""
    keep = {"$multiply": [-1, {"$max": [_STARTS_KEPT, _COUNT]}]}
    return {"$slice": [starts, keep]}
