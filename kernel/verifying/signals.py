"""What must hold of a signal that has been pending for long (pure)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kernel.model import Signal, WorkflowInstance
from kernel.protocol import signaling
from kernel.verifying.finding import Finding

#: Reconciliation looks every 30 s; what it has not seen for ten times as long nobody looks at.
SETTLED_AFTER: Final = timedelta(minutes=5)


def of_signal(signal: Signal, instance: WorkflowInstance, now: datetime) -> list[Finding]:
    """Return what contradicts a pending signal; of the instance its outline suffices."""
    if signal.created_at is None or now - signal.created_at < SETTLED_AFTER:
        return []
    if signaling.is_spent(instance, signal):
        fact = "has woken a step and is still pending"
    elif instance.status.is_terminal:
        fact = f"is pending for an instance that is {instance.status}"
    elif _is_overlooked(signal, instance, now):
        fact = "is what a step waits for, and woke nobody"
    else:
        return []
    return [
        Finding(
            subject=signal.signal_id, invariant=10, fact=fact, biz_key=instance.biz_key,
            status=instance.status.value,
        )
    ]  # fmt: skip


def _is_overlooked(signal: Signal, instance: WorkflowInstance, now: datetime) -> bool:
    waits = {wait.step: wait for wait in instance.waits}
    since = [waits[step].since for step in signaling.matched_steps(instance, signal)]
    long = [moment for moment in since if moment is not None and now - moment >= SETTLED_AFTER]
    return bool(long) and signaling.activate(instance, [signal]) is not None
