"""The commit of a step's outcome, settled by the last of its wave (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kernel.model import WorkflowInstance
from kernel.protocol.apply import Document, apply_changes
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.protocol.holding import held_commit
from kernel.protocol.settling import Policy, Settlement, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Homecoming:
    """A commit, and which steps it begins beside bringing one home."""

    commit: Commit
    begins: tuple[str, ...] = ()


def home_alone(instance: WorkflowInstance, step: str, changes: Changes) -> Homecoming:
    """Return the commit of a step whose siblings are still out: only its own step moves."""
    return Homecoming(commit=held_commit(instance, "come home", changes, steps=(step,)))


def home_last(
    document: Document,
    step: str,
    changes: Changes,
    *,
    wave: tuple[str, ...],
    now: datetime,
    policy: Policy,
) -> Homecoming:
    """Return the commit of the last one home: its step and the settled instance in one write."""
    before = WorkflowInstance.model_validate(document)
    after = WorkflowInstance.model_validate(apply_changes(document, changes, now))
    settlement: Settlement = settle(after, wave, now, policy)
    stages = (changes, settlement.changes) if settlement.changes else (changes,)
    commit = held_commit(
        before,
        "come home and settle",
        *stages,
        steps=(step, *settlement.begins),
        releases=settlement.releases,
    )
    return Homecoming(commit=commit, begins=settlement.begins)
