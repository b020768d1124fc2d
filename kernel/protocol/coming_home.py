"""The commit of a step's outcome, settled by the last of its wave (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kernel.model import WorkflowInstance
from kernel.protocol.apply import Document, apply_changes, typed_after
from kernel.protocol.commit import Commit
from kernel.protocol.deferring import defer_changes
from kernel.protocol.expressions import Changes, Expression
from kernel.protocol.holding import held_commit, stamped
from kernel.protocol.resources import Refusal
from kernel.protocol.settling import Policy, Settlement, settle

_NONE: Mapping[str, Refusal] = {}


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
    refused: Mapping[str, Refusal] = _NONE,
) -> Homecoming:
    """Return the commit of the last one home: its step and the settled instance in one write.

    `document` is the instance as stored; the answer tells how the commit leaves it. A next step
    whose permits were `refused` is put off in the same write.
    """
    first = {**changes, **stamped()}
    before, document = document, apply_changes(document, first, now)
    stages: tuple[Changes, ...] = (first,)
    after = typed_after(instance, before, document)
    if refused:
        # In a stage of its own: since when it could have run is written by the one before.
        put_off: dict[str, Expression] = {}
        for name, why in refused.items():
            put_off.update(defer_changes(after, name, why))
        before, document = document, apply_changes(document, put_off, now)
        after = typed_after(after, before, document)
        stages = (first, put_off)
    settlement: Settlement = settle(after, wave, now, policy)
    if settlement.changes:
        stages = (*stages, settlement.changes)
        document = apply_changes(document, settlement.changes, now)
    commit = held_commit(
        instance,
        "come home and settle",
        *stages,
        steps=(step, *refused, *settlement.begins),
        releases=settlement.releases,
    )
    return Homecoming(commit=commit, begins=settlement.begins, document=document)
