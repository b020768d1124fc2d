"""What was entered and what finalizers ended. Leaves judging to `tests.chaos.judge`."""

import os
import time

from tests.kit import ledger

LEDGER = "CHAOS_LEDGER"


def write(what: str, **facts: object) -> None:
    """Add a line; the time is monotonic, alike in every process, because clocks are skewed."""
    stamped = {"what": what, "pid": os.getpid(), "at": time.monotonic(), **facts}
    ledger.append(os.environ[LEDGER], stamped)
