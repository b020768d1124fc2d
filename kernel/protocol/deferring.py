"""Waiting for a permit: what being put off writes into a step (pure, design 1.4, 2.5).

Waiting touches no attempt and records no error, and the place in the line (`blocked_on.since`,
`kernel.protocol.turns`) stays over repeated refusals. A step found running was interrupted: that is
counted here, since it is pending afterwards.
"""

from __future__ import annotations

from kernel.model import Reason, StepStatus, WorkflowInstance
from kernel.protocol import spans, turns
from kernel.protocol.expressions import Add, Changes, Expression, Lit, Now, Record, Span
from kernel.protocol.holding import cleared
from kernel.protocol.resources import Refusal


def defer_changes(instance: WorkflowInstance, step: str, refused: Refusal) -> Changes:
    """Return the changes that put one step off until a permit is handed on to it."""
    state = instance.steps[step]
    path = f"steps.{step}"
    until = Now(refused.retry_ms)
    changes: dict[str, Expression] = {
        f"{path}.status": Lit(StepStatus.PENDING.value),
        f"{path}.seq": Lit(state.seq + 1),
        f"{path}.not_before": until,
        f"{path}.since": Now(),
    }
    if state.status is StepStatus.RUNNING:
        waited = {"scheduling_ms": Span((f"{path}.started_at", "interrupted_at"))}
        changes.update(spans.close_lost_attempt(step, state))
        changes[f"{path}.recoveries"] = Add(1)
    else:
        waited = spans.waited(instance, step)
        if spans.is_in_line(state):
            waited = {"traffic_ms": Span((f"{path}.since",))}
    changes.update(cleared(instance, step, "place"))
    changes[f"{path}.blocked_on"] = blocked_record(refused, turns.place(instance, step))
    changes.update(spans.add_to_totals(step, waited))
    changes.update(spans.lead(step, waited, state))
    return changes


def blocked_record(refused: Refusal, since: Expression) -> Record:
    """Return what an instance or step is blocked on by a refusal."""
    reason = Reason.PAUSED if refused.paused else Reason.PERMIT
    return Record(
        {
            "reason": Lit(reason.value),
            "resources": Lit(list(refused.resources)),
            "needs": Lit(list(refused.needs)),
            "since": since,
            "until": Now(refused.retry_ms),
        }
    )
