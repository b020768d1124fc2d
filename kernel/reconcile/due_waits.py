"""Part 1: waiting instances whose time has come run again, a page at a time (design 2.3)."""

from __future__ import annotations

from collections.abc import Iterable

from kernel.engine.hinting import HintWriter
from kernel.engine.placing import place_due
from kernel.model import InstanceStatus
from kernel.protocol import owning
from kernel.reconcile.turn import Turn
from kernel.store import GroupedInstances, InstanceScan, Outline


def activate_due_waits(
    scan: InstanceScan, instances: GroupedInstances, hints: HintWriter, *, limit: int
) -> Turn:
    """Activate up to `limit` due waits, oldest first."""
    due = scan.due_waiting(limit=limit)
    woken, _ = activate_all(scan, instances, hints, due)
    # None woken means that others are at it: going on would only meet the same ones again.
    return Turn(woken, is_full=len(due) == limit and woken > 0)


def activate_all(
    scan: InstanceScan, instances: GroupedInstances, hints: HintWriter, found: Iterable[Outline]
) -> tuple[int, set[str]]:
    """Wake those whose time has come; return how many, and the workflow_ids whose wait is over.

    A timer and a signal compete on one condition, the revision that was read. When fewer guards
    held than were sent, the instances are read again, and whoever is awake is put into its lane: a
    lane may hold it already.
    """
    due = {}
    for one in found:
        commit = owning.activate_due(one.instance, one.now)
        if commit is not None:
            due[one.instance.workflow_id] = (one, commit)
    if not due:
        return 0, set()
    woken = instances.commit_all([commit for _, commit in due.values()])
    if woken == len(due):
        place_due(hints, ((one.instance, one.now) for one, _ in due.values()))
        return woken, set(due)
    again = scan.outlines(due)
    place_due(
        hints,
        (
            (one.instance, one.instance.claimable_time)
            for one in again.values()
            if one.instance.status is InstanceStatus.RUNNING and one.instance.claim_token is None
        ),
    )
    return woken, {
        workflow_id
        for workflow_id, one in again.items()
        if owning.activate_due(one.instance, one.now) is None
    }
