"""The recovery dispatcher: whatever a request path left behind reaches the kernel.

Overview: rows are taken one at a time, when they are about to be handled, never a batch up front:
find the row due longest, and every second time the one due last → take its dispatch claim → call
the kernel → settle the row under that claim. The claim is renewed before each call to the kernel,
and each call is bounded to less than the lease.

    accepted                     dispatched
    busy (older round ends)      given back, soon again
    stale_round, row unchanged   refused: the kernel has seen a later round (a restored backup)
    stale_round, row moved on    nothing: the claim's filter matches no row
    closed                       refused, for people
    error of this row            given back, delay doubling up to ten minutes, no last attempt
    kernel's store away          given back, and the pass ends: the other rows would only wait too
    withdrawing                  superseded, then withdrawn

Guarantees: a row that always fails delays itself only, because its next turn moves into the future
while those behind it keep theirs; and however many fresh ones fail, what was accepted last does not
wait for all of them, because a pass works from both ends. Leaves to others: being called
(`jobs.wakeups`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

from jobs.dispatch import transitions
from jobs.dispatch.clock import db_now
from jobs.dispatch.intent import Disagreement, Intent, read_identity, read_intent
from jobs.dispatch.mixin import dispatch_models
from jobs.dispatch.registration import StillEnding, end_all, register
from jobs.dispatch.relay import settle_missed_confirm
from jobs.dispatch.states import (
    BACKOFF_CAP,
    BACKOFF_FIRST,
    BUSY_DELAY,
    RECOVERY_TIMEOUT_SECONDS,
)
from jobs.dispatch.transitions import Taken
from kernel import Kernel, StartResult, Unavailable, UsageError

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

log = structlog.get_logger(__name__)

#: Rows and seconds of one pass.
PASS_ROWS = 500
PASS_SECONDS = 20.0

_LONGEST_FIRST = ("dispatch_next_at", "pk")
_LAST_FIRST = ("-dispatch_next_at", "-pk")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchReport:
    """How many rows of one pass ended how."""

    dispatched: int = 0
    withdrawn: int = 0
    refused: int = 0
    deferred: int = 0
    lost: int = 0
    unavailable: int = 0

    @property
    def handled(self) -> int:
        """Rows looked at."""
        return (
            self.dispatched
            + self.withdrawn
            + self.refused
            + self.deferred
            + self.lost
            + self.unavailable
        )


def dispatch_due(limit: int = PASS_ROWS, *, kernel: Kernel | None = None) -> DispatchReport:
    """Handle due rows of every model with an intent, at most `limit` and 20 seconds of them.

    On repeat: rows already settled are not due any more. Several may run at once.
    """
    if kernel is None:
        from jobs.runtime import get_kernel

        kernel = get_kernel()
    counts: Counter[Handled] = Counter()
    passes = [_Pass(model) for model in dispatch_models()]
    end = time.monotonic() + PASS_SECONDS
    while passes and counts.total() < limit and time.monotonic() < end:
        current = passes.pop(0)
        handled = current.handle_next(kernel)
        if handled is None:
            continue
        counts[handled] += 1
        if handled is Handled.UNAVAILABLE:
            break
        passes.append(current)
    report = DispatchReport(**{kind.value: count for kind, count in counts.items()})
    if report.handled:
        log.info("dispatch_pass", **{kind.value: count for kind, count in counts.items()})
    return report


class _Pass:
    """One model's share of a pass: the rows that were due when it began."""

    def __init__(self, model: type[DispatchMixin]) -> None:
        self._model = model
        self._horizon: datetime | None = None
        self._from_the_end = False

    def handle_next(self, kernel: Kernel) -> Handled | None:
        """Handle the row due longest, or the one due last, in turns; None when none is due."""
        due = transitions.rows(self._model).filter(transitions.due_filter())
        if self._horizon is not None:
            # What was put off in this pass waits for the next one, however short its delay.
            due = due.filter(dispatch_next_at__lte=self._horizon)
        found: tuple[Any, datetime] | None = (
            due.annotate(now=db_now())
            .order_by(*(_LAST_FIRST if self._from_the_end else _LONGEST_FIRST))
            .values_list("pk", "now")
            .first()
        )
        if found is None:
            return None
        pk, now = found
        self._horizon = self._horizon or now
        self._from_the_end = not self._from_the_end
        taken = transitions.take(self._model, pk)
        return Handled.LOST if taken is None else handle(kernel, taken)


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
