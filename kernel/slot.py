"""One worker slot: at most one drain at a time in a pool child, woken or by itself (design 2.4).

A wakeup is a message, and messages can be lost, together with the broker itself. So a thread beside
the child's task loop looks by itself, first when the child starts (it may have been born into a
backlog whose message died with its predecessor), then whenever it has been idle for `poll_interval`
seconds: in the lanes, then in MongoDB. The slot is taken before anything is claimed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kernel.errors import KernelError

log: Final = logging.getLogger("baton.slot")

#: How long one wakeup may keep the slot while its worker serves other queues too; it then rings
#: once more and stands at the end of the line, so that no queue starves beside a busy one.
_SHARE_SECONDS: Final = 5.0


class Drain(Protocol):
    """Runs what is due on some queues; returns how many claims ran."""

    def __call__(self, queues: Sequence[str], *, max_seconds: float | None = None) -> int:
        """Run until nothing is due, or for about `max_seconds`."""


class WorkerSlot:
    """The right to run claims in one process, shared by wakeups and the polling thread.

    `drain(queues)` runs what the lanes tell of, `poll(queues)` also what they do not;
    `ring_if_due(queue)` passes a wakeup on that found the slot taken; `queues()` are those this
    process serves. `is_wide(queues)` tells whether a drain runs their claims side by side: it then
    serves all queues in turn, because one long step must not keep the other claims' slots empty.
    """

    def __init__(
        self,
        drain: Drain,
        *,
        poll: Callable[[Sequence[str]], int],
        ring_if_due: Callable[[str], None],
        queues: Callable[[], Sequence[str]],
        is_wide: Callable[[Sequence[str]], bool] = lambda _queues: False,
        poll_interval: float = 5.0,
    ) -> None:
        self._drain = drain
        self._poll_queues = poll
        self._ring_if_due = ring_if_due
        self._queues = queues
        self._is_wide = is_wide
        self._poll_interval = poll_interval
        self._taken = threading.Lock()
        self._used_at = time.monotonic()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look by itself. On repeat: nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._poll, name="baton-poll", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the polling thread, and wait for the drain it is in. On repeat: nothing.

        That drain is none of the host's tasks, so nobody else would wait for its step to be home.
        """
        self._stopped.set()
        with self._taken:
            pass

    def wake(self, queue: str) -> int:
        """Drain a queue in this slot; return how many claims ran.

        If the polling thread has the slot, the wakeup is passed on first if something is due, and
        then waits, so that the message's child counts as busy.
        """
        if not self._taken.acquire(blocking=False):
            self._ring_if_due(queue)
            self._taken.acquire()
        try:
            others = [name for name in self._queues() if name != queue]
            if self._is_wide([queue, *others]):
                return self._drain([queue, *others])
            return self._drain([queue], max_seconds=_SHARE_SECONDS if others else None)
        finally:
            self._used_at = time.monotonic()
            self._taken.release()

    def _poll(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            idle = time.monotonic() - self._used_at
            if pause and idle < self._poll_interval:
                pause = max(0.1, self._poll_interval - idle)
                continue
            self._look()
            pause = self._poll_interval

    def _look(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            if self._stopped.is_set():
                return
            ran = self._poll_queues(list(self._queues()))
            if ran:
                log.info("no wakeup came: %d claims ran by polling", ran)
        except KernelError as exc:
            log.warning("polling: %s", exc)
        except BaseException:  # this thread is all that looks when wakeups are lost
            log.exception("polling failed")
        finally:
            self._used_at = time.monotonic()
            self._taken.release()
