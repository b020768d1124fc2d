"""Changes every write of a claim holder has in common (pure)."""

from __future__ import annotations

from kernel.model import InstanceStatus, WorkflowInstance
from kernel.protocol.commit import Commit, Guard
from kernel.protocol.expressions import Add, Changes, Now, Unset


def stamped() -> dict[str, Add | Now]:
    """Return what every change of state writes beside itself."""
    return {"revision": Add(1), "updated_at": Now()}


def released() -> dict[str, Unset]:
    """Return the change that gives the claim back."""
    return {"claim_token": Unset(), "claim_owner": Unset(), "interrupted_at": Unset()}


def cleared(instance: WorkflowInstance, step: str, *fields: str) -> dict[str, Unset]:
    """Return the changes that remove fields of a step, for those that are there.

    Whoever writes this under the step's `seq` knows what is there, and every field costs.
    """
    state = instance.steps[step]
    present = (name for name in fields if getattr(state, name) not in (None, ()))
    return {f"steps.{step}.{name}": Unset() for name in present}


def held_commit(
    instance: WorkflowInstance,
    label: str,
    *stages: Changes,
    steps: tuple[str, ...] = (),
    releases: bool = False,
) -> Commit:
    """Return a commit of the holder: same status, its token, and the seq of every step it moves."""
    assert instance.claim_token
    guard = Guard(
        workflow_id=instance.workflow_id,
        statuses=(instance.status,),
        claim_token=instance.claim_token,
        step_seqs={name: instance.steps[name].seq for name in steps},
    )
    assert not instance.status.is_terminal, InstanceStatus(instance.status)
    first, *rest = stages
    return Commit(
        label=label, guard=guard, stages=({**first, **stamped()}, *rest), releases=releases
    )
