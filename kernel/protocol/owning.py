"""Transitions that do not need a claim, or that give one (pure, design 1.4).

Guarantees that each names what must still be true: a token, nobody's claim together with the
revision that was read, or a status. Leaves to others: when to try them (`kernel.engine`,
`kernel.reconcile`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kernel import limits
from kernel.model import InstanceStatus, Reason, StepStatus, WaitKind, WorkflowInstance
from kernel.protocol import readiness, settling, spans
from kernel.protocol.commit import UNCLAIMED, Commit, Guard
from kernel.protocol.expressions import (
    TOKEN_TAIL,
    Add,
    Changes,
    Expression,
    FieldValue,
    Lit,
    Now,
    Push,
    Record,
    Span,
    Unset,
    WithoutSteps,
)
from kernel.protocol.holding import held_commit, released, stamped
from kernel.protocol.outcomes import encodable

CLAIMABLE = (InstanceStatus.RUNNING, InstanceStatus.FAILING)
SUPERSEDABLE = (InstanceStatus.RUNNING, InstanceStatus.WAITING)
_NO_PLACES: Mapping[str, datetime] = {}
#: As a culprit: no step of this instance is to blame for the death of its holder.
NOBODY = ""


def claim_changes(token: str, owner: str, *, lease_ms: int) -> Changes:
    """Take the right to advance an instance; when the lease before was over is kept."""
    return {
        "claim_token": Lit(token),
        "claim_owner": Lit(owner),
        "interrupted_at": FieldValue("claimable_time"),
        "claimable_time": Now(lease_ms),
        "blocked_on": Unset(),
        **stamped(),
    }


def token_under(seal: str, workflow_id: str) -> str:
    """Return the token of one claim of a group, as `TokenUnder(seal)` writes it."""
    return seal + workflow_id[-TOKEN_TAIL:]


def release(instance: WorkflowInstance) -> Commit:
    """Give a claim back under which nothing could run."""
    return held_commit(instance, "release", settling.release(instance), releases=True)


def hand_back(
    instance: WorkflowInstance,
    not_entered: tuple[str, ...] = (),
    places: Mapping[str, datetime] = _NO_PLACES,
) -> Commit:
    """Give a claim back for a deploy; steps begun but not entered get their attempt back.

    Those that had waited for a permit keep their place in the line.
    """
    changes: dict[str, Expression] = {**settling.handed_back()}
    if _begun_under_this_claim(instance):
        changes["finalizer.attempt"] = Add(-1)
        changes["finalizer.started_at"] = Unset()
    for name in not_entered:
        changes.update(_not_entered(name))
    for name, place in places.items():
        changes[f"steps.{name}.place"] = Lit(place)
    return held_commit(instance, "hand back", changes, steps=not_entered, releases=True)


def _begun_under_this_claim(instance: WorkflowInstance) -> bool:
    """A finalizer begun but not entered; one begun before that was interrupted, which counts."""
    begun = instance.finalizer.started_at if instance.finalizer is not None else None
    before = instance.interrupted_at
    return begun is not None and (before is None or begun >= before)


def free_dead(instance: WorkflowInstance, culprit: str | None) -> Commit:
    """Give a dead holder's claim back; steps its death is blamed on stay running.

    Named, the culprit alone counts a recovery at its next begin; without a name all do, and with
    `NOBODY` none.
    """
    assert instance.claim_token
    changes: dict[str, Expression] = {**settling.handed_back(), **stamped()}
    bystanders = [
        name
        for name, state in instance.steps.items()
        if culprit is not None and name != culprit and state.status is StepStatus.RUNNING
    ]
    for name in bystanders:
        path = f"steps.{name}"
        changes.update(spans.close_lost_attempt(name, instance.steps[name], end=None))
        changes[f"{path}.status"] = Lit(StepStatus.PENDING.value)
        changes[f"{path}.seq"] = Lit(instance.steps[name].seq + 1)
        changes[f"{path}.since"] = Now()
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=CLAIMABLE,
        claim_token=instance.claim_token,
        step_seqs={name: instance.steps[name].seq for name in bystanders},
    )
    return Commit(label="free dead", guard=guard, stages=(changes,), releases=True)


def defer_incompatible(
    instance: WorkflowInstance, fingerprint_here: str, *, seconds: int
) -> Commit:
    """Leave an instance of another step protocol alone, and say so; guarded by what was read.

    `seconds` is how long: short while a worker is about that knows the protocol.
    """
    detail = f"stored {instance.definition_fingerprint[:12]}, here {fingerprint_here[:12]}"
    changes = _left_to_others(detail, seconds=seconds)
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=CLAIMABLE,
        claim_token=instance.claim_token or UNCLAIMED,
        revision=instance.revision,
    )
    return Commit(label="defer incompatible", guard=guard, stages=(changes,))


def leave_unread(
    workflow_id: str, token: str, begun: tuple[str, ...], fault: str, *, seconds: int
) -> Commit:
    """Give back a claim on an instance that cannot be read here; what it began was not entered."""
    changes: dict[str, Expression] = {**_left_to_others(fault, seconds=seconds)}
    for name in begun:
        changes.update(_not_entered(name))
    guard = Guard(workflow_id=workflow_id, statuses=CLAIMABLE, claim_token=token)
    return Commit(label="leave unread", guard=guard, stages=(changes,), releases=True)


def _left_to_others(detail: str, *, seconds: int) -> Changes:
    until = Now(1000 * seconds)
    return {
        **released(),
        "claimable_time": until,
        "blocked_on": Record(
            {
                "reason": Lit(Reason.INCOMPATIBLE_DEFINITION.value),
                "since": Now(),
                "until": until,
                "detail": Lit(detail),
            }
        ),
        **stamped(),
    }


def _not_entered(step: str) -> Changes:
    """Take back the begin of a step whose code nobody entered."""
    path = f"steps.{step}"
    return {
        f"{path}.status": Lit(StepStatus.PENDING.value),
        f"{path}.seq": Add(1),
        f"{path}.attempt": Add(-1),
        f"{path}.since": FieldValue(f"{path}.started_at"),
    }


def activate_due(instance: WorkflowInstance, now: datetime) -> Commit | None:
    """Wake the steps whose poll time has come, of an instance nobody holds; None if none is due."""
    due = readiness.due_waits(instance, now)
    if not due:
        return None
    return unclaimed_activation(instance, woken(instance, dict.fromkeys(due)))


def activate_held(instance: WorkflowInstance, steps: tuple[str, ...]) -> Commit:
    """Wake due steps under the claim, before anything else runs."""
    changes = woken(instance, dict.fromkeys(steps))
    return held_commit(instance, "activate", changes, steps=steps)


def unclaimed_activation(instance: WorkflowInstance, changes: Mapping[str, Expression]) -> Commit:
    """Wake steps of an instance nobody holds: timer, poll and signal compete on one condition."""
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=(InstanceStatus.WAITING, InstanceStatus.RUNNING),
        claim_token=UNCLAIMED,
        revision=instance.revision,
    )
    awake: dict[str, Expression] = {
        **changes,
        "status": Lit(InstanceStatus.RUNNING.value),
        "claimable_time": Now(),
        "blocked_on": Unset(),
        **stamped(),
    }
    return Commit(label="activate", guard=guard, stages=(awake,))


def woken(
    instance: WorkflowInstance, signal_ids: Mapping[str, str | None]
) -> dict[str, Expression]:
    """Turn waiting steps to pending; each maps to the signal that wakes it, None for its time."""
    kinds = {wait.step: wait.kind for wait in instance.waits}
    changes: dict[str, Expression] = {"waits": WithoutSteps(tuple(signal_ids))}
    for name, signal_id in signal_ids.items():
        path = f"steps.{name}"
        waited = Span((f"{path}.since",), end=f"{path}.not_before")
        changes[f"{path}.status"] = Lit(StepStatus.PENDING.value)
        changes[f"{path}.seq"] = Lit(instance.steps[name].seq + 1)
        changes[f"{path}.not_before"] = Unset()
        changes[f"{path}.blocked_on"] = Unset()
        changes.update(spans.add_to_totals(name, {"external_ms": waited}))
        if signal_id is None:
            kind = "timer" if kinds[name] is WaitKind.TIMER else "poll"
            changes[f"{path}.resume"] = Record({"kind": Lit(kind)})
            changes[f"{path}.since"] = FieldValue(f"{path}.not_before")
        else:
            resume = {"kind": Lit("signal"), "signal_id": Lit(signal_id)}
            changes[f"{path}.resume"] = Record(resume)
            changes[f"{path}.since"] = Now()
            changes[f"{path}.woken_by"] = Push(Lit(signal_id), keep=limits.WOKEN_BY_KEPT)
    return changes


def supersede(instance: WorkflowInstance, reason: str) -> Commit:
    """End an obsolete generation from outside; needs no token, only a status that may end so."""
    message = encodable(reason, limit_bytes=limits.ERROR_MESSAGE_BYTES)
    changes: dict[str, Expression] = {
        **released(),
        "status": Lit(InstanceStatus.CANCELED.value),
        "waits": Lit([]),
        "finished_at": Now(),
        "blocked_on": Unset(),
        "error": Record(
            {"code": Lit("superseded"), "message": Lit(message), "step": Lit(None), "at": Now()}
        ),
        **stamped(),
    }
    for name in instance.plan:
        changes[f"steps.{name}.resume"] = Unset()
    guard = Guard(workflow_id=instance.workflow_id, statuses=SUPERSEDABLE, claim_token=None)
    return Commit(label="supersede", guard=guard, stages=(changes,), releases=True)
