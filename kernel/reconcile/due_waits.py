"""Part 1: a waiting instance whose time has come runs again (design 2.3)."""

from __future__ import annotations

from kernel.engine.hinting import HintWriter
from kernel.protocol import owning
from kernel.reconcile.turn import Turn
from kernel.store import InstanceScan, InstanceStore
from kernel.store.port import Stored


def activate_due_waits(
    scan: InstanceScan, store: InstanceStore, hints: HintWriter, *, limit: int
) -> Turn:
    """Activate up to `limit` due waits, oldest first."""
    due = scan.due_waiting(limit=limit)
    woken = sum(activate(store, hints, stored) for stored in due)
    # None woken means that others are at it: going on would only meet the same ones again.
    return Turn(woken, is_full=len(due) == limit and woken > 0)


def activate(store: InstanceStore, hints: HintWriter, stored: Stored) -> bool:
    """Activate one instance if its wait is due; the timer and a signal compete on one condition."""
    commit = owning.activate_due(stored.instance, stored.now)
    if commit is None or not store.commit(commit):
        return False
    again = store.read(stored.instance.workflow_id)
    if again is not None and again.instance.claim_token is None:
        hints.place(again.instance, again.now)
    return True
