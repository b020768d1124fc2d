"""Whose turn it is in a line: since when each could have gone on (pure, design 2.5).

A place in the line is the moment from which a step could have begun, not the one at which a worker
found it without a permit. Claims are refused by many slots at once and at different speeds: by the
moment of refusal, a slot that was held up would put its workflow behind all that came after it.

Guarantees that a place stays over refusals: what it follows from does not change while somebody
waits, but for the `since` of a step put off, whose `blocked_on.since` keeps it.
"""

from __future__ import annotations

from datetime import datetime

from kernel.model import StepStatus, WorkflowInstance
from kernel.protocol import readiness, spans
from kernel.protocol.expressions import Expression, Latest, Now


def place(instance: WorkflowInstance, step: str | None) -> Expression:
    """Return the place of a step, or (None) of the workflow itself, as a commit writes it."""
    found = _first(instance) if step is None else step
    return Now() if found is None else Latest(tuple(_moments(instance, found)))


def place_now(instance: WorkflowInstance, step: str | None) -> datetime | None:
    """Return the same from an instance as it is stored; None: it comes only now."""
    found = _first(instance) if step is None else step
    if found is None or found not in readiness.eligible_steps(instance):
        return None  # what it depends on comes home in the very write that would begin it
    return _stored(instance, found)


def _first(instance: WorkflowInstance) -> str | None:
    """Return the step for which the workflow needs its own permits, the one that waits longest."""
    steps = readiness.eligible_steps(instance)
    return min(steps, key=lambda step: _stored(instance, step), default=None)


def _stored(instance: WorkflowInstance, step: str) -> datetime:
    moments = _moments(instance, step).values()
    return max(moment for moment in moments if moment is not None)


def _moments(instance: WorkflowInstance, step: str) -> dict[str, datetime | None]:
    """Return fields whose latest is the place; one of them is always there."""
    state = instance.steps[step]
    path = f"steps.{step}"
    if spans.is_in_line(state) and state.blocked_on is not None and state.blocked_on.since:
        return {f"{path}.blocked_on.since": state.blocked_on.since}
    if state.status is StepStatus.RUNNING and instance.interrupted_at is not None:
        return {"interrupted_at": instance.interrupted_at}
    return {**spans.eligible(instance, step), f"{path}.not_before": state.not_before}
