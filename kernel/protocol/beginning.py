"""Entering activity code: one write begins a whole wave (pure, design 1.4 "begin step(s)")."""

from __future__ import annotations

from collections.abc import Mapping

from kernel.model import StepStatus, WorkflowInstance
from kernel.protocol import spans
from kernel.protocol.commit import Commit
from kernel.protocol.deferring import defer_changes
from kernel.protocol.expressions import Add, Expression, Lit, Now, Span, Unset
from kernel.protocol.holding import cleared, held_commit
from kernel.protocol.resources import Refusal

_NONE: Mapping[str, Refusal] = {}


def begin(
    instance: WorkflowInstance,
    steps: tuple[str, ...],
    refused: Mapping[str, Refusal] = _NONE,
) -> Commit:
    """Return the commit that counts an attempt for each step, before its activity is entered.

    Siblings whose permits were `refused` are put off in the same write.
    """
    changes: dict[str, Expression] = {}
    for name in steps:
        changes.update(begin_changes(instance, name))
    for name, why in refused.items():
        changes.update(defer_changes(instance, name, why))
    return held_commit(instance, "begin", changes, steps=(*steps, *refused))


def begin_changes(instance: WorkflowInstance, step: str) -> dict[str, Expression]:
    """Return the changes that begin one step; found running, its last attempt was interrupted."""
    state = instance.steps[step]
    path = f"steps.{step}"
    changes: dict[str, Expression] = {
        f"{path}.status": Lit(StepStatus.RUNNING.value),
        f"{path}.seq": Lit(state.seq + 1),
        f"{path}.attempt": Add(1),
        f"{path}.started_at": Now(),
        **cleared(instance, step, "not_before", "blocked_on", "place"),
    }
    if state.status is StepStatus.RUNNING:
        waited = {"scheduling_ms": Span((f"{path}.started_at", "interrupted_at"))}
        changes.update(spans.close_lost_attempt(step, state))
        changes[f"{path}.recoveries"] = Add(1)
    else:
        waited = spans.waited(instance, step)
    changes.update(spans.add_to_totals(step, waited))
    changes.update(spans.lead(step, waited, state))
    if instance.queued_since is not None:
        changes["queued_since"] = Unset()
    return changes
