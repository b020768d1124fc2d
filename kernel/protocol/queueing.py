"""Standing in line for a permit: commits that put off, and that hand on (pure, design 1.4, 2.5).

An instance put off gives its claim back and is found by `blocked_on.resources`; handed on, it is
claimable at once and stays in the line until somebody claims it. One that waits for one permit of
one step may also be claimed by whoever has just had the permit granted to that claim; its step
begins in the same write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kernel.model import InstanceStatus, StepStatus, WorkflowInstance
from kernel.protocol import owning, readiness, settling, spans, turns
from kernel.protocol.apply import Document, apply_changes
from kernel.protocol.beginning import begin_changes
from kernel.protocol.commit import UNCLAIMED, Commit, Guard
from kernel.protocol.deferring import blocked_record, defer_changes
from kernel.protocol.expressions import Add, Expression, FieldValue, Lit, Now
from kernel.protocol.holding import held_commit, released, stamped
from kernel.protocol.resources import Refusal


def defer(document: Document, refused: Mapping[str, Refusal], now: datetime) -> Commit:
    """Return the commit that puts off every step that could have run, and gives the claim back."""
    before = WorkflowInstance.model_validate(document)
    changes: dict[str, Expression] = {}
    for step, why in refused.items():
        changes.update(defer_changes(before, step, why))
    after = WorkflowInstance.model_validate(apply_changes(document, changes, now))
    return held_commit(
        before, "defer", changes, settling.release(after), steps=tuple(refused), releases=True
    )


def defer_workflow(instance: WorkflowInstance, refused: Refusal, now: datetime) -> Commit:
    """Return the commit that gives the claim back until the workflow's own permits are handed on.

    Its steps stay as they are, but for those that were interrupted.
    """
    interrupted = [n for n, s in instance.steps.items() if s.status is StepStatus.RUNNING]
    changes: dict[str, Expression] = {}
    for step in interrupted:
        state = instance.steps[step]
        path = f"steps.{step}"
        changes.update(spans.close_lost_attempt(step, state))
        changes[f"{path}.status"] = Lit(StepStatus.PENDING.value)
        changes[f"{path}.seq"] = Lit(state.seq + 1)
        changes[f"{path}.recoveries"] = Add(1)
        changes[f"{path}.since"] = FieldValue("interrupted_at")
    changes |= {
        **released(),
        "claimable_time": Now(refused.retry_ms),
        "blocked_on": blocked_record(refused, turns.place_of_workflow(instance, now)),
        "queued_since": Now() if instance.queued_since is None else FieldValue("queued_since"),
    }
    return held_commit(instance, "defer workflow", changes, steps=tuple(interrupted), releases=True)


def hand_on(workflow_id: str, revision: int, steps: Sequence[str]) -> Commit:
    """Return the commit that lets a waiter try at once; `revision` is that of its deferral.

    No change of state: it stays in the line until it is claimed, and the revision stays.
    """
    guard = Guard(
        workflow_id=workflow_id,
        statuses=(InstanceStatus.RUNNING,),
        claim_token=UNCLAIMED,
        revision=revision,
    )
    changes: dict[str, Expression] = {"claimable_time": Now()}
    for step in steps:
        changes[f"steps.{step}.not_before"] = Now()
    return Commit(label="hand on", guard=guard, stages=(changes,))


def move(
    workflow_id: str,
    revision: int,
    steps: Sequence[str],
    resources: Sequence[str],
    *,
    for_ms: int | None,
) -> Commit:
    """Return the commit with which a waiter stands in another line, at the age it has.

    With `for_ms`, places are kept for it so long elsewhere: it does not look by itself before.
    """
    guard = Guard(
        workflow_id=workflow_id,
        statuses=(InstanceStatus.RUNNING,),
        claim_token=UNCLAIMED,
        revision=revision,
    )
    names = Lit(list(resources))
    changes: dict[str, Expression] = {"blocked_on.resources": names, **stamped()}
    for step in steps:
        changes[f"steps.{step}.blocked_on.resources"] = names
    if for_ms is not None:
        until = Now(for_ms)
        changes |= {"claimable_time": until, "blocked_on.until": until}
        for step in steps:
            changes[f"steps.{step}.not_before"] = until
            changes[f"steps.{step}.blocked_on.until"] = until
    return Commit(label="move in line", guard=guard, stages=(changes,))


def next_step(
    instance: WorkflowInstance, resource: str, now: datetime, *, max_recoveries: int
) -> str | None:
    """Return the step that would begin, alone, if it had its permit; None if that is not all."""
    put_off = [
        name
        for name, state in instance.steps.items()
        if spans.is_in_line(state) and state.blocked_on and resource in state.blocked_on.resources
    ]
    if instance.claim_token is not None or instance.waits or len(put_off) != 1:
        return None
    [step] = put_off
    freed = instance.steps[step].model_copy(update={"not_before": None})
    instance = instance.model_copy(update={"steps": {**instance.steps, step: freed}})
    action = readiness.next_action(instance, now, max_recoveries=max_recoveries)
    is_first_entry = freed.status is StepStatus.PENDING
    return step if action == readiness.RunWave((step,)) and is_first_entry else None


def claim_and_begin(
    instance: WorkflowInstance, step: str, token: str, owner: str, *, lease_ms: int
) -> Commit:
    """Return the commit that claims an instance in line and begins the step whose permit is there.

    Guarded by the revision of its deferral, and by nobody's claim: a holder that died since then in
    another step has left the `seq` of this one as it was.
    """
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=(InstanceStatus.RUNNING,),
        claim_token=UNCLAIMED,
        step_seqs={step: instance.steps[step].seq},
        revision=instance.revision,
    )
    changes: dict[str, Expression] = {
        **owning.claim_changes(token, owner, lease_ms=lease_ms),
        **begin_changes(instance, step),
        "interrupted_at": Now(),  # what is claimable later is taken now, and nobody held it
    }
    return Commit(label="claim and begin", guard=guard, stages=(changes,))
