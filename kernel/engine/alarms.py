"""Time limits of calls that run in their caller's own thread: one thread watches them all."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Alarm:
    """One limit: `is_over` once its time has passed before its block ended."""

    __slots__ = ("at", "is_over", "ring")

    def __init__(self, at: float, ring: Callable[[], None]) -> None:
        self.at = at
        self.ring = ring
        self.is_over = False


class Alarms:
    """The running limits of a process; its thread starts with the first and sleeps till the next.

    Guarantees that setting and ending a limit costs no thread switch unless it is the next to ring.
    Leaves to others: what a ring does; it must not raise (`Cancellation.set` does not).
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[Alarm] = set()
        self._looks_at = math.inf
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @contextmanager
    def after(self, seconds: float, ring: Callable[[], None]) -> Iterator[Alarm]:
        """Call `ring` in the watching thread if the block takes longer than `seconds`."""
        alarm = Alarm(time.monotonic() + seconds, ring)
        with self._changed:
            self._running.add(alarm)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="baton-alarms", daemon=True
                )
                self._thread.start()
            elif alarm.at < self._looks_at:
                self._changed.notify_all()
        try:
            yield alarm
        finally:
            with self._changed:
                self._running.discard(alarm)

    def close(self) -> None:
        """End the watching; running limits ring no more. On repeat: nothing."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and not (due := self._due()):
                    self._changed.wait(self._pause())
                if self._is_closed:
                    return
                self._running.difference_update(due)
            for alarm in due:
                alarm.is_over = True
                alarm.ring()

    def _due(self) -> list[Alarm]:
        now = time.monotonic()
        return [alarm for alarm in self._running if alarm.at <= now]

    def _pause(self) -> float | None:
        self._looks_at = min((alarm.at for alarm in self._running), default=math.inf)
        return None if self._looks_at == math.inf else max(0.0, self._looks_at - time.monotonic())
