"""One worker slot: at most one drain at a time in a pool child, woken or by itself (design 2.4).

A wakeup is a message, and messages can be lost, together with the broker itself. So a thread beside
the child's task loop looks by itself whenever the child has been idle for `poll_interval` seconds:
in the lanes, or without Redis straight in MongoDB. The slot is taken before anything is claimed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from kernel.errors import KernelError

log: Final = logging.getLogger("baton.slot")

Drain = Callable[[Sequence[str]], int]


class WorkerSlot:
    """The right to run claims in one process, shared by wakeups and the polling thread.

    `drain(queues)` runs what is due; `ring_if_due(queue)` passes a wakeup on that found the slot
    taken; `queues()` are those this process serves.
    """

    def __init__(
        self,
        drain: Drain,
        *,
        ring_if_due: Callable[[str], None],
        queues: Callable[[], Sequence[str]],
        poll_interval: float = 5.0,
    ) -> None:
        self._drain = drain
        self._ring_if_due = ring_if_due
        self._queues = queues
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
        """End the polling thread after the drain it is in. On repeat: nothing."""
        self._stopped.set()

    def wake(self, queue: str) -> int:
        """Drain a queue in this slot; return how many claims ran.

        If the polling thread has the slot, the wakeup is passed on first if something is due, and
        then waits, so that the message's child counts as busy.
        """
        if not self._taken.acquire(blocking=False):
            self._ring_if_due(queue)
            self._taken.acquire()
        try:
            return self._drain([queue])
        finally:
            self._used_at = time.monotonic()
            self._taken.release()

    def _poll(self) -> None:
        pause = self._poll_interval
        while not self._stopped.wait(pause):
            idle = time.monotonic() - self._used_at
            pause = max(0.1, self._poll_interval - idle) if idle < self._poll_interval else 0.0
            if pause == 0.0:
                self._look()
                pause = self._poll_interval

    def _look(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            ran = self._drain(list(self._queues()))
            if ran:
                log.info("no wakeup came: %d claims ran by polling", ran)
        except KernelError as exc:
            log.warning("polling: %s", exc)
        except Exception:
            log.exception("polling failed")
        finally:
            self._used_at = time.monotonic()
            self._taken.release()
