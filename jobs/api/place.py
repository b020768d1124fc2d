"""What a job in a line waits for now, where it stands, and what is known of when it goes on.

Guarantees: only what stored facts tell; beyond the first hundred, while paused, or where only the
length of other people's work decides, nothing is said. Leaves to others: the line itself
(``kernel.capacity``), and why a job waits at all (``jobs.api.presentation``).
"""

import logging
from typing import Any

from jobs.dispatch import relay
from jobs.runtime import get_kernel
from kernel import KernelError, Reason, ResourceStatus, Unavailable, WorkflowInstance

log = logging.getLogger(__name__)

#: Reasons that mean a line of a resource.
_IN_LINE = frozenset({Reason.PERMIT, Reason.PAUSED})


def place_of(instance: WorkflowInstance | None) -> dict[str, Any]:
    """Return ``reason``, ``position`` (1 is next), ``estimate`` (seconds, not sooner), where known.

    A pause or its end writes to no workflow in the line: the resource tells which one it is.
    """
    blocked = None if instance is None else instance.blocked_on
    if instance is None or blocked is None or not blocked.resources:
        return {}
    if blocked.reason not in _IN_LINE:
        return {}
    try:
        status = get_kernel().capacity.status(blocked.resources[0])
    except KernelError as error:
        if isinstance(error, Unavailable):
            relay.breaker.failed()
        log.warning("no answer about the line of %s: %s", blocked.resources[0], error)
        return {}
    reason = Reason.PAUSED if status.paused else Reason.PERMIT
    return {"reason": str(reason), **_place(status, instance.workflow_id)}


def _place(status: ResourceStatus, workflow_id: str) -> dict[str, Any]:
    positions = [each.position for each in status.waiters if each.workflow_id == workflow_id]
    if not positions:
        return {}
    position = min(positions)
    estimate = _estimate(status, position)
    return {"position": position, **({} if estimate is None else {"estimate": estimate})}


def _estimate(status: ResourceStatus, position: int) -> float | None:
    if status.paused:
        return None
    until_next = 0.0
    if status.next_start_at is not None:
        until_next = max(0.0, (status.next_start_at - status.now).total_seconds())
    if status.max_starts_per_second:
        return round(until_next + (position - 1) / status.max_starts_per_second, 1)
    return round(until_next, 1) or None
