"""The commit of a step's outcome, settled by the last of its wave (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kernel.model import WorkflowInstance
from kernel.protocol.apply import Document, apply_changes
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.protocol.holding import held_commit, stamped
from kernel.protocol.settling import Policy, Settlement, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Homecoming:
    """A commit, which steps it begins beside bringing one home, and how it leaves the instance."""

    commit: Commit
    begins: tuple[str, ...] = ()
    document: Document | None = None


def home_alone(instance: WorkflowInstance, step: str, changes: Changes) -> Homecoming:
    """Return the commit of a step whose siblings are still out: only its own step moves."""
    return Homecoming(commit=held_commit(instance, "come home", changes, steps=(step,)))


def home_last(
    instance: WorkflowInstance,
    document: Document,
    step: str,
    changes: Changes,
    *,
    wave: tuple[str, ...],
    now: datetime,
    policy: Policy,
) -> Homecoming:
    """Return the commit of the last one home: its step and the settled instance in one write.

    `document` is the instance as stored; the answer tells how the commit leaves it.
    """
    first = {**changes, **stamped()}
    document = apply_changes(document, first, now)
    settlement: Settlement = settle(WorkflowInstance.model_validate(document), wave, now, policy)
    stages: tuple[Changes, ...] = (first,)
    if settlement.changes:
        stages = (first, settlement.changes)
        document = apply_changes(document, settlement.changes, now)
    commit = held_commit(
        instance,
        "come home and settle",
        *stages,
        steps=(step, *settlement.begins),
        releases=settlement.releases,
    )
    return Homecoming(commit=commit, begins=settlement.begins, document=document)
