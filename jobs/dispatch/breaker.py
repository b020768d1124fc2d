"""Stop the request path from waiting, request after request, for a server that is away.

Guarantees: after one failure nobody in this process waits again for `PAUSE_SECONDS`; then one call
tries. Leaves to others: the work itself, which stays stored and is picked up by recovery.
"""

import threading
import time

#: Seconds the request path leaves publishing to recovery after a failure.
PAUSE_SECONDS = 5.0


class Breaker:
    """A pause after failures, shared by the threads of one process."""

    def __init__(self, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._pause_seconds = pause_seconds
        self._open_until = 0.0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Tell whether to try now; after a pause only one caller gets the first try."""
        with self._lock:
            now = time.monotonic()
            if now < self._open_until:
                return False
            if self._open_until:
                self._open_until = now + self._pause_seconds
            return True

    def failed(self) -> None:
        """Start a pause."""
        with self._lock:
            self._open_until = time.monotonic() + self._pause_seconds

    def succeeded(self) -> None:
        """End the pause."""
        with self._lock:
            self._open_until = 0.0
