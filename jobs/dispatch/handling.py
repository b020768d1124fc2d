"""What recovery does with rows whose dispatch claim it holds, alone or by the page.

    accepted                     dispatched
    busy (older round ends)      given back, soon again
    stale_round, row unchanged   refused: the kernel has seen a later round (a restored backup)
    stale_round, row moved on    nothing: the claim's filter matches no row
    closed                       refused, for people
    error of this row            given back, delay doubling up to ten minutes, no last attempt
    kernel's store away          given back, and the pass ends: the other rows would only wait too
    withdrawing                  superseded, then withdrawn

Guarantees that each is settled under its own claim, and that each call to the kernel is bounded to
less than the lease. Leaves to others: finding rows and taking them (`recovery`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

import structlog

from jobs.dispatch import transitions
from jobs.dispatch.intent import Disagreement, Intent, read_identity, read_intent
from jobs.dispatch.registration import StillEnding, end_all, register, register_page
from jobs.dispatch.relay import settle_missed_confirm
from jobs.dispatch.states import (
    BACKOFF_CAP,
    BACKOFF_FIRST,
    BUSY_DELAY,
    RECOVERY_TIMEOUT_SECONDS,
)
from jobs.dispatch.transitions import Taken
from kernel import Kernel, StartResult, Unavailable, UsageError

log: Final = structlog.get_logger(__name__)


class Handled(StrEnum):
    """What became of one candidate."""

    DISPATCHED = "dispatched"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"
    DEFERRED = "deferred"
    #: Somebody else took it first, or it moved on meanwhile.
    LOST = "lost"
    #: The kernel's store did not answer.
    UNAVAILABLE = "unavailable"


def handle(kernel: Kernel, taken: Taken) -> Handled:
    """Do what a taken row needs, and settle it under its claim."""
    try:
        return _withdraw(kernel, taken) if taken.withdrawing else _start(kernel, taken)
    except Unavailable as exc:
        # Not the row's fault: it keeps its short delay, however long the outage lasts.
        transitions.give_back(taken, delay=BUSY_DELAY, reason=str(exc), failed=False)
        return Handled.UNAVAILABLE
    except StillEnding as exc:
        return _defer(taken, str(exc))
    except Exception as exc:
        known = isinstance(exc, Disagreement | UsageError)
        log.warning("dispatch_failed", pk=str(taken.row["pk"]), error=str(exc), exc_info=not known)
        delay = backoff(taken.attempts)
        reason = f"{type(exc).__name__}: {exc}"
        if not transitions.give_back(taken, delay=delay, reason=reason, failed=True):
            return Handled.LOST
        return Handled.DEFERRED


def backoff(attempts: int) -> timedelta:
    """Give the delay after one more failure, `attempts` having gone before."""
    return min(BACKOFF_CAP, BACKOFF_FIRST * (1 << min(attempts, 30)))


def _start(kernel: Kernel, taken: Taken) -> Handled:
    intent = read_intent(taken.model, taken.row)
    if intent.supersedes is not None and not transitions.renew(taken):
        return Handled.LOST
    result = register(kernel, intent, timeout=RECOVERY_TIMEOUT_SECONDS)
    if result.accepted:
        if transitions.confirm_taken(taken):
            return Handled.DISPATCHED
        settle_missed_confirm(kernel, intent)
        return Handled.LOST
    return _not_accepted(taken, intent, result)


def _not_accepted(taken: Taken, intent: Intent, result: StartResult) -> Handled:
    match result.reason:
        case "stale_round":
            reason = f"round {intent.fencing_token} is older than the instance's; retry or cancel"
        case "closed":
            reason = "the instance of this generation is over for good; cancel or start a new one"
        case _:
            return _defer(taken, f"not accepted yet: {result.reason}")
    return Handled.REFUSED if transitions.refuse(taken, reason) else Handled.LOST


def _defer(taken: Taken, reason: str) -> Handled:
    kept = transitions.give_back(taken, delay=BUSY_DELAY, reason=reason, failed=False)
    return Handled.DEFERRED if kept else Handled.LOST


def _withdraw(kernel: Kernel, taken: Taken) -> Handled:
    intent = read_identity(taken.model, taken.row)
    reason = "the business object was canceled"
    if not end_all(kernel, intent, reason=reason, timeout=RECOVERY_TIMEOUT_SECONDS):
        return _defer(taken, "its failure finalizer still runs")
    return Handled.WITHDRAWN if transitions.withdrawn_taken(taken) else Handled.LOST


def plain_intent(taken: Taken) -> Intent | None:
    """Return the intent of a row that only has to be registered."""
    if taken.withdrawing:
        return None
    try:
        intent = read_intent(taken.model, taken.row)
        return intent if intent.supersedes is None else None
    except Disagreement:
        return None  # told when it is handled alone


def start_page(kernel: Kernel, page: Sequence[tuple[Taken, Intent]]) -> list[Handled]:
    """Register rows that are held, and settle each under its claim.

    On repeat of a row: the same answer of the kernel, never a second instance. A death before the
    rows are confirmed leaves them to whoever takes them next.
    """
    handled: list[Handled] = []
    by_type: dict[str, list[tuple[Taken, Intent]]] = defaultdict(list)
    for taken, intent in page:
        by_type[intent.type].append((taken, intent))
    for rows in by_type.values():
        intents = [intent for _, intent in rows]
        try:
            results = register_page(kernel, intents, timeout=RECOVERY_TIMEOUT_SECONDS)
        except Exception:  # noqa: BLE001 - alone, each meets its own error, and the others none
            handled += _each_alone(kernel, [taken for taken, _ in rows])
            continue
        accepted = [row for row, result in zip(rows, results, strict=True) if result.accepted]
        confirmed = transitions.confirm_page([taken for taken, _ in accepted])
        for (taken, intent), result in zip(rows, results, strict=True):
            if not result.accepted:
                handled.append(_not_accepted(taken, intent, result))
            elif taken.row["pk"] in confirmed:
                handled.append(Handled.DISPATCHED)
            else:
                settle_missed_confirm(kernel, intent)
                handled.append(Handled.LOST)
    return handled


def _each_alone(kernel: Kernel, page: Sequence[Taken]) -> list[Handled]:
    handled: list[Handled] = []
    for taken in page:
        if Handled.UNAVAILABLE in handled:
            transitions.give_back(taken, delay=BUSY_DELAY, reason="not reached", failed=False)
            handled.append(Handled.UNAVAILABLE)
        else:
            handled.append(handle(kernel, taken) if transitions.renew(taken) else Handled.LOST)
    return handled
