"""Registering work: one biz_key, one instance, for ever (pure, design 1.4).

Guarantees that of racing registrations one starts the execution, and that an old round loses
against a new one. Leaves to others: the hints that follow (`kernel.publish`).
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

from kernel.definition import Plan
from kernel.errors import unencodable
from kernel.model import InstanceStatus, Priority, WorkflowInstance
from kernel.protocol.commit import Commit, Guard
from kernel.protocol.expressions import Add, Changes, Expression, Json, Lit, Now, Unset
from kernel.protocol.holding import released, stamped

#: The revision of an instance nobody has advanced yet.
FIRST_REVISION: Final = 1
#: Fields of the instance that end with a round.
_OF_A_ROUND = ("error", "finished_at", "finalizer", "blocked_on", "queued_since")


class Start(StrEnum):
    """What `start_or_resume` found; the value is the `reason` of its answer."""

    CREATED = "created"
    REGISTERED = "registered"
    REPLAYED = "replayed"
    STALE_ROUND = "stale_round"
    BUSY = "busy"
    CLOSED = "closed"

    @property
    def accepted(self) -> bool:
        """The round is registered: only this allows the publisher to confirm its intent."""
        return self in (Start.CREATED, Start.REGISTERED, Start.REPLAYED)

    @property
    def activated(self) -> bool:
        """This very call started the execution: the one winner."""
        return self in (Start.CREATED, Start.REPLAYED)


def workflow_id_of(biz_key: str) -> str:
    """Return the identity of the instance of a biz_key, known before it is registered.

    Raises:
        InvalidValue: it holds a lone surrogate.
    """
    try:
        data = biz_key.encode()
    except UnicodeEncodeError as exc:
        raise unencodable(exc, what="biz_key") from exc
    return "wf_" + hashlib.sha256(data).hexdigest()[:32]


def decide(existing: WorkflowInstance, fencing_token: int) -> Start:
    """Return what registering a round means for an instance that exists."""
    if fencing_token < existing.fencing_token:
        return Start.STALE_ROUND
    if fencing_token == existing.fencing_token:
        return Start.REGISTERED
    match existing.status:
        case InstanceStatus.FAILED:
            return Start.REPLAYED
        case InstanceStatus.COMPLETED | InstanceStatus.CANCELED:
            return Start.CLOSED
        case _:
            return Start.BUSY


def create_changes(
    plan: Plan, *, biz_key: str, value: object, fencing_token: int, priority: Priority
) -> Changes:
    """Return the fields of a new instance, all steps pending, claimable at once."""
    steps = {
        name: {
            "status": "pending",
            "seq": 0,
            "attempt": 0,
            "depends_on": list(plan.depends_on[name]),
        }
        for name in plan.steps
    }
    return {
        "workflow_id": Lit(workflow_id_of(biz_key)),
        "type": Lit(plan.type),
        "queue": Lit(plan.queue),
        "biz_key": Lit(biz_key),
        "fencing_token": Lit(fencing_token),
        "status": Lit(InstanceStatus.RUNNING.value),
        "priority": Lit(int(priority)),
        "definition_fingerprint": Lit(plan.fingerprint),
        "input": Json(value),
        "plan": Lit(list(plan.steps)),
        "steps": Lit(steps),
        "output": Lit({}),
        "waits": Lit([]),
        "claimable_time": Now(),
        "retry_count": Lit(0),
        "revision": Lit(FIRST_REVISION),
        "created_at": Now(),
        "round_started_at": Now(),
        "updated_at": Now(),
    }


def replay(
    instance: WorkflowInstance, *, value: object, fencing_token: int, priority: Priority
) -> Commit:
    """Start a new round of a failed instance: what was not completed runs, nothing else."""
    assert fencing_token > instance.fencing_token
    changes: dict[str, Expression] = {
        **released(),
        "status": Lit(InstanceStatus.RUNNING.value),
        "input": Json(value),
        "fencing_token": Lit(fencing_token),
        "priority": Lit(int(min(priority, instance.priority))),
        "retry_count": Add(1),
        "claimable_time": Now(),
        "round_started_at": Now(),
        "waits": Lit([]),
        **{field: Unset() for field in _OF_A_ROUND},
        **stamped(),
    }
    for name, state in instance.steps.items():
        if not state.is_done:
            changes[f"steps.{name}"] = Lit(
                {
                    "status": "pending",
                    "seq": state.seq + 1,
                    "attempt": 0,
                    "depends_on": list(state.depends_on),
                }
            )
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=(InstanceStatus.FAILED,),
        claim_token=None,
        fencing_token=instance.fencing_token,
    )
    return Commit(label="replay", guard=guard, stages=(changes,))


def raise_priority(instance: WorkflowInstance, priority: Priority) -> Commit:
    """Move a live instance to a better lane; a change of order is no change of state."""
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=(InstanceStatus.RUNNING, InstanceStatus.WAITING),
        claim_token=None,
        priority_above=int(priority),
    )
    change = {"priority": Lit(int(priority))}
    return Commit(label="raise priority", guard=guard, stages=(change,))
