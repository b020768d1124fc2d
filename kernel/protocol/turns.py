"""Whose turn it is in a line: since when each could have gone on (pure, design 2.5).

A place in the line is the moment from which a step could have begun, not the one at which a worker
found it without a permit. Claims are refused by many slots at once and at different speeds: by the
moment of refusal, a slot that was held up would put its workflow behind all that came after it.

Guarantees that a place stays over refusals: what it follows from does not change while somebody
waits, but for the `since` of a step put off, whose `blocked_on.since` keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kernel.model import StepStatus, WorkflowInstance
from kernel.protocol import readiness, spans
from kernel.protocol.expressions import Expression, Latest, Now


def place(instance: WorkflowInstance, step: str) -> Expression:
    """Return the place of a step, as a commit writes it."""
    return Latest(tuple(_moments(instance, step)))


def place_of_workflow(instance: WorkflowInstance, now: datetime) -> Expression:
    """Return the place of a workflow in the line for permits of its own."""
    first = _first(instance, now)
    return Now() if first is None else Latest(tuple(_going_on(instance, first)))


def place_now(instance: WorkflowInstance, step: str | None, now: datetime) -> datetime | None:
    """Return a step's or (None) the workflow's place from an instance as it is stored.

    None: it comes only now.
    """
    if step is None:
        first = _first(instance, now)
        return None if first is None else _latest(_going_on(instance, first))
    if step not in readiness.eligible_steps(instance):
        return None  # what it depends on comes home in the very write that would begin it
    return _latest(_moments(instance, step))


def _first(instance: WorkflowInstance, now: datetime) -> str | None:
    """Return the step for which the workflow needs its own permits, the one ready for longest."""
    steps = readiness.ready_steps(instance, now)
    return min(steps, key=lambda step: _latest(_going_on(instance, step)), default=None)


def _latest(moments: Mapping[str, datetime | None]) -> datetime:
    return max(moment for moment in moments.values() if moment is not None)


def _moments(instance: WorkflowInstance, step: str) -> dict[str, datetime | None]:
    """Return fields whose latest is a step's place; one of them is always there."""
    state = instance.steps[step]
    path = f"steps.{step}"
    if spans.is_in_line(state) and state.blocked_on is not None and state.blocked_on.since:
        return {f"{path}.blocked_on.since": state.blocked_on.since}
    return _going_on(instance, step)


def _going_on(instance: WorkflowInstance, step: str) -> dict[str, datetime | None]:
    """Return fields whose latest is since when a step could go on, whatever line it stood in.

    One that stands in a line goes on when it is handed on to, or looks by itself.
    """
    state = instance.steps[step]
    path = f"steps.{step}"
    if state.place is not None:
        return {f"{path}.place": state.place}
    if state.status is StepStatus.RUNNING and instance.interrupted_at is not None:
        return {"interrupted_at": instance.interrupted_at}
    return {**spans.eligible(instance, step), f"{path}.not_before": state.not_before}
