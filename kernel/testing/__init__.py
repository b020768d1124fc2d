"""For tests of workflows: shift time, run until nothing is runnable (design 9).

Not for production: shifting moves what this kernel's store considers now.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.errors import UsageError
from kernel.runtime import Kernel

_ROUNDS_MAX = 10_000


class TimeShift:
    """Moves the database's now as one kernel sees it, forward only."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def advance(self, *, seconds: float) -> None:
        """Let `seconds` pass at once.

        Raises:
            UsageError: negative seconds; time does not go back.
        """
        if seconds < 0:
            raise UsageError("time goes forward only: give zero or more seconds")
        self._kernel.clock.offset_ms += int(seconds * 1000)


def run_until_idle(kernel: Kernel, queues: Sequence[str]) -> int:
    """Tick and drain until nothing is runnable now; return how many claims ran.

    Sleeping instances stay asleep: advance the time and call again.
    """
    ran = 0
    for _ in range(_ROUNDS_MAX):
        kernel.tick()
        done = kernel.drain(queues)
        if done == 0:
            return ran
        ran += done
    raise UsageError(f"still runnable after {_ROUNDS_MAX} rounds: does a step yield for ever?")
