"""What activities did, one JSON object a line in a file that no outage reaches."""

import json
import os
import time
from pathlib import Path
from typing import Any

LEDGER = "TRUST_LEDGER"


def write(what: str, workflow_id: str, step: str, attempt: int) -> None:
    """Add a line; one write, so that lines of several processes never mix."""
    line = json.dumps(
        {
            "what": what,
            "workflow_id": workflow_id,
            "step": step,
            "attempt": attempt,
            "pid": os.getpid(),
            "at": time.time(),
        }
    )
    handle = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, line.encode() + b"\n")
    finally:
        os.close(handle)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines so far, oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]
