"""Waking by a signal: which waits it matches, and the commit that wakes them (pure, design 4).

Matching is on signal_type, wait_key and generation. A signal wakes a step at most once, whoever is
slow: its id is kept in the step's `woken_by` until the step completes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.model import InstanceStatus, Signal, Wait, WaitKind, WorkflowInstance
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Expression
from kernel.protocol.holding import held_commit
from kernel.protocol.owning import unclaimed_activation, woken

#: Statuses in which an instance nobody holds may be woken.
WAKEABLE = (InstanceStatus.WAITING, InstanceStatus.RUNNING)


def matched_steps(instance: WorkflowInstance, signal: Signal) -> tuple[str, ...]:
    """Return the steps whose wait this signal ends, in the order they began to wait."""
    return tuple(
        wait.step
        for wait in instance.waits
        if wait.kind is WaitKind.SIGNAL
        and (wait.signal_type, wait.wait_key, wait.generation)
        == (signal.signal_type, signal.wait_key, signal.generation)
        and signal.signal_id not in instance.steps[wait.step].woken_by
    )


def is_spent(instance: WorkflowInstance, signal: Signal) -> bool:
    """Tell whether this signal has woken a step of the instance already."""
    return any(signal.signal_id in state.woken_by for state in instance.steps.values())


def signal_waits(instance: WorkflowInstance) -> tuple[Wait, ...]:
    """Return the waits for a signal: while there are any, the inbox must be looked into."""
    return tuple(wait for wait in instance.waits if wait.kind is WaitKind.SIGNAL)


def is_awaited(instance: WorkflowInstance, signal: Signal) -> bool:
    """Tell whether the signal would wake a step of the instance, which nobody holds."""
    is_free = instance.status in WAKEABLE and instance.claim_token is None
    return is_free and bool(matched_steps(instance, signal))


def matched(instance: WorkflowInstance, signals: Sequence[Signal]) -> dict[str, str]:
    """Return the steps these signals end the wait of, each with its signal; the first counts."""
    by_step: dict[str, str] = {}
    for signal in signals:
        for step in matched_steps(instance, signal):
            by_step.setdefault(step, signal.signal_id)
    return by_step


def activate(instance: WorkflowInstance, signals: Sequence[Signal]) -> Commit | None:
    """Wake what signals match, of an instance nobody holds; None if it waits for none of them.

    The guard names the revision, so each of them wakes at most what was read.
    """
    awaited = [signal for signal in signals if is_awaited(instance, signal)]
    by_step = matched(instance, awaited)
    return unclaimed_activation(instance, woken(instance, by_step)) if by_step else None


def activate_held(instance: WorkflowInstance, signals: Sequence[Signal]) -> Commit | None:
    """Wake, under the claim, the steps whose signal is in the inbox; the oldest signal counts."""
    by_step = matched(instance, signals)
    if not by_step:
        return None
    changes: dict[str, Expression] = woken(instance, by_step)
    return held_commit(instance, "activate by signal", changes, steps=tuple(by_step))
