"""What became of a commit whose answer was lost, read from the instance (pure, design 1.4)."""

from __future__ import annotations

from enum import Enum

from kernel.model import WorkflowInstance
from kernel.protocol.commit import Commit


class Verdict(Enum):
    """The commit happened, did not happen yet, or can never happen."""

    APPLIED = "applied"
    SEND_AGAIN = "send_again"
    LOST = "lost"


def judge(instance: WorkflowInstance, commit: Commit) -> Verdict:
    """Judge a lost answer by token and step seq, never by revision.

    A commit that moves no step is told by what only it could have left: its claim gone (release),
    or the finalizer's attempt (everything else a holder writes without a step).
    """
    ours = instance.claim_token == commit.guard.claim_token
    risen = [instance.steps[name].seq - seq for name, seq in commit.guard.step_seqs.items()]
    if ours:
        # By two when a step came home to wait and the settling closed its wait in the same write.
        moved = bool(risen) and min(risen) >= 1
        return Verdict.APPLIED if moved or _changed(instance, commit) else Verdict.SEND_AGAIN
    if commit.releases and all(by == 1 for by in risen):
        # The token is gone because this very write gave it up, or somebody took over after the
        # lease ended; either way nothing of ours is left to write.
        return Verdict.APPLIED
    return Verdict.LOST


def _changed(instance: WorkflowInstance, commit: Commit) -> bool:
    """A holder's commit without steps, still holding: only its revision guard could repeat it."""
    return not commit.guard.step_seqs and instance.status not in commit.guard.statuses
