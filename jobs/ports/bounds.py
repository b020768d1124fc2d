"""How long one call to the outside may go on: a wall-clock end and a stop sign.

Guarantees: whoever calls `check` often enough ends within that distance of the end or the sign.
Leaves to others: turning `OutOfTime` into their port's own failure.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Protocol, TypeVar

from jobs.ports.errors import PortCancelled

_T = TypeVar("_T")


class StopSign(Protocol):
    """Whatever can say that the caller wants to stop: a `threading.Event`, `ctx.cancelled`."""

    def is_set(self) -> bool:
        """Tell whether the caller asked to stop."""
        ...


class OutOfTime(Exception):
    """The call's wall-clock time is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one call; safe to share between threads."""

    #: `time.monotonic()` moment after which the call is over.
    end: float
    cancelled: StopSign | None = None

    @classmethod
    def of(
        cls, *, timeout: float, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> "Bounds":
        """Start the clock now: `timeout` seconds, or up to `deadline` (monotonic) if sooner."""
        end = time.monotonic() + timeout
        return cls(end=end if deadline is None else min(end, deadline), cancelled=cancelled)

    def remaining(self) -> float:
        """Give the seconds left, always above zero.

        Raises: PortCancelled when the sign is up, OutOfTime when nothing is left.
        """
        if self.cancelled is not None and self.cancelled.is_set():
            raise PortCancelled
        left = self.end - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def check(self) -> None:
        """Raise PortCancelled or OutOfTime if the call has to end now."""
        self.remaining()


#: Seconds a blocked call may go without looking at its bounds.
LOOK_UP_EVERY = 0.2


def within(bounds: Bounds, call: Callable[[], _T]) -> _T:
    """Run a call that knows no limits in a thread of its own; wait as long as the bounds allow.

    A call that outlives its bounds is abandoned: its daemon thread ends by itself.
    Raises: whatever `call` raises, PortCancelled, OutOfTime.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except Exception as exc:  # noqa: BLE001 - handed to the waiting caller unchanged
            outcome.set_exception(exc)

    threading.Thread(target=run, name="bounded-call", daemon=True).start()
    while True:
        try:
            return outcome.result(timeout=min(LOOK_UP_EVERY, bounds.remaining()))
        except FutureTimeout:
            if outcome.done():
                raise
