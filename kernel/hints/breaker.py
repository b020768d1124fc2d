"""Stop asking a Redis that does not answer, so that waiting for it is paid once, not per request.

```
          a call failed                     the pause is over
closed ───────────────▶ open (1, 2, 4, 5 s) ───────────────▶ half open: one trial, others refused
   ▲                      ▲                                        │              │
   │                      └───────── the trial failed: doubled ────┘              │
   └───────────────────────────────── the trial was answered ─────────────────────┘
```

Guarantees: while open, `admit` refuses at once; calls that were already on their way when it
opened neither double the pause nor close it again; a trial that ends in any way frees its place.
Thread-safe. Leaves to others: which errors count as silence (kernel.hints.redis_hints).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kernel.errors import HintsUnavailable

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 5.0


class Breaker:
    """A circuit breaker around one server; `clock` gives monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pause = FIRST_PAUSE_SECONDS
        #: When the next trial is allowed, on `clock`; None while closed.
        self._open_until: float | None = None
        self._trial_running = False
        #: Goes up with every change of state, so that late answers of older calls are told apart.
        self._epoch = 0

    def admit(self) -> int:
        """Let a call through; its ticket goes back by `answered`, `silent` or `abandoned`.

        Raises: HintsUnavailable at once, while open or while another call is the trial.
        """
        with self._lock:
            if self._open_until is None:
                return self._epoch
            wait = self._open_until - self._clock()
            if wait > 0:
                raise HintsUnavailable(f"Redis did not answer; next trial in {wait:.1f} s")
            if self._trial_running:
                raise HintsUnavailable("Redis did not answer; a trial is on its way")
            self._trial_running = True
            self._epoch += 1
            return self._epoch

    def answered(self, ticket: int) -> None:
        """Record that the server answered the admitted call. On repeat: nothing changes."""
        with self._lock:
            if ticket == self._epoch and self._trial_running:
                self._trial_running = False
                self._open_until = None
                self._pause = FIRST_PAUSE_SECONDS
                self._epoch += 1

    def silent(self, ticket: int) -> None:
        """Record that the admitted call got no answer. On repeat: nothing changes."""
        with self._lock:
            if ticket != self._epoch:
                return
            if self._trial_running:
                self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            self._trial_running = False
            self._open_until = self._clock() + self._pause
            self._epoch += 1

    def abandoned(self, ticket: int) -> None:
        """Record that the admitted call ended for a reason of its own, so the next is the trial.

        On repeat: nothing changes.
        """
        with self._lock:
            if ticket == self._epoch and self._trial_running:
                self._trial_running = False
                self._epoch += 1
