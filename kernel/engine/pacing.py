"""Hands start slots on when they come due, between two ticks (design 2.5).

A rate's next start comes due at a moment nobody else would notice before the next tick. Whoever has
seen it in an answer looks again then. Only a hint in this process: tick finds what a death forgets.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kernel.errors import KernelError

log: Final = logging.getLogger("baton.capacity")

#: Further ahead than this tick is early enough; nearer than this is looked at together, seconds.
_HORIZON: Final = 5.0
_AT_LEAST: Final = 0.02
_RESOURCES_MAX: Final = 1_000
#: How long closing waits for a look that is going on, seconds.
_CLOSING: Final = 2.0


class Pacer:
    """One thread, started when first needed; `look(resource)` hands on what has come due."""

    def __init__(self, look: Callable[[str], object]) -> None:
        self._look = look
        self._due: dict[str, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def arm(self, resource: str, seconds: float) -> None:
        """Look at a resource in so many seconds; the earlier of two moments counts."""
        if seconds > _HORIZON:
            return
        at = time.monotonic() + max(_AT_LEAST, seconds)
        with self._changed:
            known = self._due.get(resource)
            if self._closed or (known is not None and known <= at):
                return
            if known is None and len(self._due) >= _RESOURCES_MAX:
                return
            self._due[resource] = at
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="baton-pacer", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread, and wait a moment for a look that is going on. On repeat: nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSING)

    def _run(self) -> None:
        while (resource := self._next()) is not None:
            try:
                self._look(resource)
            except KernelError as exc:
                log.info("tick hands %s on instead: %s", resource, exc)
            except Exception:
                log.exception("pacing %s failed", resource)

    def _next(self) -> str | None:
        with self._changed:
            while not self._closed:
                first = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if first is None else self._due[first] - time.monotonic()
                if first is not None and wait is not None and wait <= 0:
                    del self._due[first]
                    return first
                self._changed.wait(wait)
        return None
