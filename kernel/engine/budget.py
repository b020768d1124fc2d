"""How many claims one drain may still run, on which queues and for how long."""

from __future__ import annotations

import math
import sys
import threading
import time


class Budget:
    """Claims and seconds of one drain; None is without limit. Thread-safe."""

    def __init__(
        self, queues: tuple[str, ...], max_claims: int | None, max_seconds: float | None
    ) -> None:
        self.queues = queues
        self._most = max_claims if max_claims is not None else sys.maxsize
        self._until = time.monotonic() + max_seconds if max_seconds is not None else math.inf
        self._lock = threading.Lock()
        self._spent = 0

    @property
    def spent(self) -> int:
        """How many claims were paid for so far."""
        return self._spent

    def left(self) -> int:
        """Return how many more claims may be taken now."""
        return max(0, self._most - self._spent) if time.monotonic() < self._until else 0

    def spend(self, *, even_if_over: bool = False) -> bool:
        """Pay for one claim, one that was taken already `even_if_over`; False: it may not run."""
        with self._lock:
            if not even_if_over and self.left() == 0:
                return False
            self._spent += 1
            return True

    def give_back(self) -> None:
        """Take back what was paid for a claim that did not come."""
        with self._lock:
            self._spent -= 1
