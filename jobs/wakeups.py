"""The Celery tasks: ``baton.wake``, ``baton.tick``, ``baton.reconcile``.

Guarantees: a message says that something may be due, never what; losing, repeating or reordering
one changes nothing, and none of them fails: a server that is away costs one log line. Leaves to
others: everything that is done (``kernel``, ``jobs.dispatch.recovery``). Design 2.2, 2.3.
"""

import logging
from collections.abc import Callable
from functools import cache

from celery import shared_task
from django.db import Error as DatabaseError
from django.db import close_old_connections

from jobs import keeping
from jobs.runtime import get_kernel
from kernel import KernelError

log = logging.getLogger(__name__)

#: A tick that finds a younger one returns, so that a doubled beat costs nothing, seconds.
TICK_AGE_SECONDS = 0.5
#: Dispatch intents one reconcile run takes at most.
DISPATCHES_PER_RUN = 500


@shared_task(name="baton.wake", ignore_result=True)
def wake(queue: object = None, *_: object, **__: object) -> None:
    """Run what is due on a queue, until nothing is or the budget is used.

    On repeat: finds nothing due. A queue nobody knows is dropped with a log line.
    """
    if not isinstance(queue, str) or queue not in served_queues():
        log.warning("wakeup for an unknown queue dropped", extra={"queue": repr(queue)[:100]})
        return
    _run("wake", lambda: keeping.slot().wake(queue))


@shared_task(name="baton.tick", ignore_result=True)
def tick(*_: object, **__: object) -> None:
    """Look at timers and lapsed leases. On repeat: harmless."""
    _run("tick", lambda: get_kernel().tick(unless_within=TICK_AGE_SECONDS))


@shared_task(name="baton.reconcile", ignore_result=True)
def reconcile(*_: object, **__: object) -> None:
    """Put back what hints and transport may have lost, and send undelivered intents.

    On repeat: harmless. Each part runs whatever became of the other.
    """
    from jobs.dispatch import recovery

    _run("reconcile", lambda: get_kernel().reconcile())
    _run("dispatch", lambda: recovery.dispatch_due(limit=DISPATCHES_PER_RUN))


@cache
def served_queues() -> frozenset[str]:
    """Return the queues that some installed definition's wakeups travel on."""
    from jobs import worker

    return frozenset(definition.plan.queue for definition in worker.installed_definitions())


def _run(duty: str, call: Callable[[], object]) -> None:
    close_old_connections()
    try:
        call()
    except (KernelError, DatabaseError) as error:
        log.warning(
            "%s could not be done now", duty, extra={"error": f"{type(error).__name__}: {error}"}
        )
    finally:
        close_old_connections()
