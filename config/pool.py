"""Celery's prefork pool, which notices a dead child within half a second.

Guarantees nothing else than Celery's own. Why it is needed: a child's end is noticed by a pipe that
closes a moment before the child can be reaped; that look then finds it alive, and the next one is
five seconds later. Until then the pool is one child short, and a pool of one stands still.
"""

from typing import Any

from celery.concurrency import asynpool, prefork

#: Seconds between two looks at the children.
LOOK_SECONDS = 0.5


class AttentivePool(asynpool.AsynPool):
    """The pool behind the event loop."""

    @property
    def timers(self) -> dict[Any, float]:
        """Say how often the event loop looks after the children."""
        return {self.maintain_pool: LOOK_SECONDS}


class AttentiveTaskPool(prefork.TaskPool):
    """The pool a worker is given by `worker_pool`; `-P` on its command line still wins."""

    Pool = AttentivePool
