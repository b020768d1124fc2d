"""What activities did, in a file that no outage reaches."""

import os
import time

from tests.kit import ledger

LEDGER = "TRUST_LEDGER"


def write(what: str, workflow_id: str, step: str, attempt: int) -> None:
    """Add a line."""
    ledger.append(
        os.environ[LEDGER],
        {
            "what": what,
            "workflow_id": workflow_id,
            "step": step,
            "attempt": attempt,
            "pid": os.getpid(),
            "at": time.time(),
        },
    )
