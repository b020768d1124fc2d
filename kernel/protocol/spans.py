"""Where a step's time went: scheduling, traffic, activity, external (design 6.1, pure).

A step's clock starts when it becomes eligible: when its last dependency came home, or when its
round started. `since` is when its present phase began, once it has been entered before.
"""

from __future__ import annotations

from datetime import datetime

from kernel import limits
from kernel.model import StepState, StepStatus, WorkflowInstance
from kernel.protocol.expressions import Add, Expression, FieldValue, Lit, Now, Push, Record, Span

Measured = dict[str, Expression]


def waited(instance: WorkflowInstance, step: str) -> dict[str, Span]:
    """Return how the time since the step's last phase began splits, measured at this write."""
    state = instance.steps[step]
    starts = tuple(eligible(instance, step))
    due = f"steps.{step}.not_before"
    if is_in_line(state):
        # Handed on at `due`: what came after that was not the resource's doing.
        return {"traffic_ms": Span(starts, end=due), "scheduling_ms": Span((*starts, due))}
    measured = {"scheduling_ms": Span(starts)}
    if state.not_before is not None:
        measured = {"external_ms": Span(starts, end=due), "scheduling_ms": Span((*starts, due))}
        starts = (*starts, due)
    if instance.queued_since is not None:
        measured["traffic_ms"] = Span((*starts, "queued_since"))
        measured["scheduling_ms"] = Span(starts, end="queued_since")
    return measured


def eligible(instance: WorkflowInstance, step: str) -> dict[str, datetime | None]:
    """Return the fields, as stored, of which the latest is when a step became eligible."""
    state = instance.steps[step]
    return {
        **{f"steps.{n}.finished_at": instance.steps[n].finished_at for n in state.depends_on},
        "round_started_at": instance.round_started_at,
        f"steps.{step}.since": state.since,
    }


def is_in_line(state: StepState) -> bool:
    """Tell whether a step was put off for a permit and has not begun since."""
    return state.blocked_on is not None and state.blocked_on.reason.is_traffic


def add_to_totals(step: str, spans: dict[str, Span]) -> Measured:
    """Return the changes that add spans to the step's totals."""
    return {f"steps.{step}.times.{kind}": Add(span) for kind, span in spans.items()}


def lead(step: str, spans: dict[str, Span], state: StepState) -> Measured:
    """Return the change that keeps what led up to an attempt, for its record.

    One that was put off for a permit adds to what led up to that.
    """
    if is_in_line(state):
        return {f"steps.{step}.lead.{kind}": Add(span) for kind, span in spans.items()}
    return {f"steps.{step}.lead": Record(dict(spans))}


def close_attempt(step: str, state: StepState, outcome: str) -> Measured:
    """Return the changes that account for an attempt coming home now."""
    path = f"steps.{step}"
    span = Span((f"{path}.started_at",))
    return {
        f"{path}.times.activity_ms": Add(span),
        f"{path}.attempts": _record(step, state, outcome, to=Now(), activity=span),
        f"{path}.since": Now(),
    }


def close_lost_attempt(
    step: str, state: StepState, *, end: str | None = "interrupted_at"
) -> Measured:
    """Return the changes that account for an attempt whose process died.

    It counts as activity until the `end` field, by default when its lease was over, or until now.
    """
    assert state.status is StepStatus.RUNNING
    path = f"steps.{step}"
    span = Span((f"{path}.started_at",), end=end)
    to = FieldValue(end) if end else Now()
    return {
        f"{path}.times.activity_ms": Add(span),
        f"{path}.attempts": _record(step, state, "lost", to=to, activity=span),
    }


def _record(step: str, state: StepState, outcome: str, *, to: Expression, activity: Span) -> Push:
    path = f"steps.{step}"
    fields: dict[str, Expression] = {
        "n": Lit(state.attempt),
        "from": FieldValue(f"{path}.started_at"),
        "to": to,
        "outcome": Lit(outcome),
        "activity_ms": activity,
        "scheduling_ms": FieldValue(f"{path}.lead.scheduling_ms"),
        "traffic_ms": FieldValue(f"{path}.lead.traffic_ms"),
        "external_ms": FieldValue(f"{path}.lead.external_ms"),
    }
    return Push(Record(fields), keep=limits.ATTEMPTS_KEPT)
