"""How many of this process's claims are at work in the engine: what a group waits for (design 1.8).

A claim in motion will write soon, or come home: whoever is about to send a group, or to take new
claims, lets those catch up for a few milliseconds: every write shared is one the database does not
have to make durable by itself. A claim inside activity code, or one that waits for an answer, is at
rest: nobody waits for it. So a process with one claim never waits.

Guarantees a bound on the waiting, whatever is forgotten: the count is a hint, no truth.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

#: How long others may keep a group waiting, seconds. Sixteen claims on a busy core need about as
#: long between two writes; a bound half as long was measured to cost a fifth of the throughput.
CATCH_UP_SECONDS: Final = 0.02


class Motion:
    """The count; thread-safe."""

    def __init__(self, *, catch_up_seconds: float = CATCH_UP_SECONDS) -> None:
        self._count = 0
        self.catch_up_seconds = catch_up_seconds
        self._rested = threading.Condition()
        #: For a thread that works for a claim, as a `with` block; may be entered by many at once.
        self.moving = _Change(self, 1)
        #: For a part of that work in which nothing will be written: a call, a wait for an answer.
        self.resting = _Change(self, -1)

    def await_rest(self) -> None:
        """Wait until nobody is in motion, or for as long as others may keep a group waiting."""
        with self._rested:
            self._rested.wait_for(self._is_at_rest, self.catch_up_seconds)

    def _is_at_rest(self) -> bool:
        return self._count <= 0

    def add(self, change: int) -> None:
        """Count one more, or one less."""
        with self._rested:
            self._count += change
            if self._count <= 0:
                self._rested.notify_all()


class _Change:
    """Counts one up or down for as long as a block runs; keeps nothing of its own."""

    __slots__ = ("_by", "_motion")

    def __init__(self, motion: Motion, by: int) -> None:
        self._motion = motion
        self._by = by

    def __enter__(self) -> None:
        self._motion.add(self._by)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._motion.add(-self._by)
