"""Part 3: pending signals meet their waits, spent ones are marked, hopeless ones closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kernel.model import Signal
from kernel.protocol import signaling
from kernel.reconcile.turn import Turn
from kernel.signals import SignalDelivery
from kernel.store import DutyLeases, InstanceScan, SignalInbox
from kernel.store.signals import MATCHED, UNMATCHED

PART: Final = "pending_signals"


def match_pending_signals(
    inbox: SignalInbox,
    scan: InstanceScan,
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
    closed = _meet(signals, inbox, scan, delivery)
    cursor = signals[-1].signal_id if len(signals) == limit else None
    if cursor is not None or after is not None:
        leases.keep_cursor(duty, holder, PART, cursor)
    return Turn(closed, is_full=cursor is not None)


def _meet(
    signals: Sequence[Signal], inbox: SignalInbox, scan: InstanceScan, delivery: SignalDelivery
) -> int:
    """Close what is decided, deliver what somebody waits for; signals that are early cost no more.

    One read for all of them: a hundred thousand early signals must not cost as many reads a run.
    """
    instances = scan.outlines({signal.workflow_id for signal in signals})
    spent, ended, delivered = [], [], 0
    for signal in signals:
        instance = instances.get(signal.workflow_id)
        if instance is None:
            continue  # not registered yet
        if signaling.is_spent(instance, signal):
            spent.append(signal.signal_id)
        elif instance.status.is_terminal:
            ended.append(signal.signal_id)
        elif signaling.activate(instance, signal) is not None:
            delivered += delivery.match(signal) is not None
    inbox.close(spent, MATCHED)
    inbox.close(ended, UNMATCHED)
    return len(spent) + len(ended) + delivered
