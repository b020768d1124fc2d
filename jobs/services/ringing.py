"""Ringing from a request: the fact is committed, so a workflow may be told, if that is quick.

Guarantees: never raises, waits at most `REQUEST_TIMEOUT_SECONDS`, and not at all while the request
path's breaker knows that the store is away. A ring that is lost is made up for by the poll fallback
of the step that waits. Leaves to others: storing the fact first.
"""

import structlog

from jobs.dispatch import relay
from jobs.dispatch.states import REQUEST_TIMEOUT_SECONDS
from jobs.runtime import get_kernel
from kernel import KernelError, Unavailable

log = structlog.get_logger(__name__)


def ring(
    *, workflow_id: str, signal_type: str, wait_key: str, generation: int, signal_id: str
) -> None:
    """Tell a workflow that what it waits for may have changed. On repeat: harmless."""
    if not relay.breaker.allows():
        log.info("not_rung", signal_id=signal_id, reason="breaker_open")
        return
    try:
        get_kernel().deliver_signal(
            workflow_id=workflow_id,
            signal_type=signal_type,
            wait_key=wait_key,
            generation=generation,
            signal_id=signal_id,
            timeout=REQUEST_TIMEOUT_SECONDS,
        )
    except Unavailable as error:
        relay.breaker.failed()
        log.warning("not_rung", signal_id=signal_id, reason=str(error))
    except KernelError as error:
        log.warning("not_rung", signal_id=signal_id, reason=str(error))
    else:
        relay.breaker.succeeded()
