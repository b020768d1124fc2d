"""Part 3: pending signals meet their waits, spent ones are marked, hopeless ones closed.

A page costs one read of its signals and one of their instances, however many of them are early: a
hundred thousand that nobody waits for yet must not cost as many reads a run.
"""

from __future__ import annotations

from typing import Final

from kernel.reconcile.turn import Turn
from kernel.signals import SignalDelivery
from kernel.store import DutyLeases, SignalInbox

PART: Final = "pending_signals"


def match_pending_signals(
    inbox: SignalInbox,
    delivery: SignalDelivery,
    leases: DutyLeases,
    *,
    duty: str,
    holder: str,
    limit: int,
) -> Turn:
    """Look at up to `limit` pending signals, going on where the last run stopped (design 4)."""
    after = leases.cursor(duty, PART)
    signals = inbox.pending_page(limit=limit, after=after)
    closed = len(delivery.match(signals))
    cursor = signals[-1].signal_id if len(signals) == limit else None
    if cursor is not None or after is not None:
        leases.keep_cursor(duty, holder, PART, cursor)
    return Turn(closed, is_full=cursor is not None)
