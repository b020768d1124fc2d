"""The recovery dispatcher: whatever a request path left behind reaches the kernel.

Overview: find the row due longest, and every second time the one due last → take its dispatch claim
→ call the kernel → settle the row under that claim. The first row of a pass goes alone, so that an
outage costs one; then come pages: a page's rows are taken when they are about to be handled, each
by its own claim, registered by one call and confirmed by one update. What is more than a plain
registration (a withdrawal, a generation to end first, a row that contradicts itself) is handled
alone. What becomes of a row: `handling`.

Guarantees: a row that always fails delays itself only, because its next turn moves into the future
while those behind it keep theirs; and however many fresh ones fail, what was accepted last does not
wait for all of them, because a pass works from both ends. Leaves to others: being called
(`jobs.wakeups`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import structlog

from jobs.dispatch import transitions
from jobs.dispatch.clock import db_now
from jobs.dispatch.handling import Handled, handle, plain_intent, start_page
from jobs.dispatch.intent import Intent
from jobs.dispatch.mixin import dispatch_models
from jobs.dispatch.transitions import Taken
from kernel import Kernel

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

log = structlog.get_logger(__name__)

#: Rows and seconds of one pass.
PASS_ROWS = 500
PASS_SECONDS = 20.0
#: Rows registered by one call: few enough to be handled well within their claims.
PAGE_ROWS = 50

_LONGEST_FIRST = ("dispatch_next_at", "pk")
_LAST_FIRST = ("-dispatch_next_at", "-pk")


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
        handled = current.handle_next(kernel, most=limit - counts.total())
        if not handled:
            continue
        counts.update(handled)
        if Handled.UNAVAILABLE in handled:
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

    def handle_next(self, kernel: Kernel, *, most: int) -> list[Handled]:
        """Handle one row at first, then up to `most` or a page; nothing when none is due."""
        is_first = self._horizon is None
        handled: list[Handled] = []
        page: list[tuple[Taken, Intent]] = []
        for pk in self._candidates(1 if is_first else min(most, PAGE_ROWS)):
            taken = transitions.take(self._model, pk)
            if taken is None:
                handled.append(Handled.LOST)
            elif not is_first and (intent := plain_intent(taken)) is not None:
                page.append((taken, intent))
            else:
                # What is held already does not wait for it.
                handled += start_page(kernel, page)
                page = []
                handled.append(handle(kernel, taken))
        return handled + start_page(kernel, page)

    def _candidates(self, most: int) -> list[Any]:
        """Find due rows, in turns the one due longest and the one due last."""
        due = transitions.rows(self._model).filter(transitions.due_filter())
        if self._horizon is None:
            now: list[datetime] = list(due.annotate(now=db_now()).values_list("now", flat=True)[:1])
            if not now:
                return []
            self._horizon = now[0]
        # What was put off in this pass waits for the next one, however short its delay.
        due = due.filter(dispatch_next_at__lte=self._horizon)
        longest = due.order_by(*_LONGEST_FIRST).values_list("pk", flat=True)[:most]
        last = due.order_by(*_LAST_FIRST).values_list("pk", flat=True)[: most // 2]
        in_turns = chain.from_iterable(zip_longest(longest, last))
        return [pk for pk in dict.fromkeys(in_turns) if pk is not None][:most]
