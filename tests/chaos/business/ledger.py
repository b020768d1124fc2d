"""What was entered and what finalizers ended, one JSON object a line in a file no outage reaches.

Guarantees that a line is whole: one write, appended. Leaves judging to `tests.chaos.judge`.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

LEDGER = "CHAOS_LEDGER"


def write(what: str, **facts: object) -> None:
    """Add a line; the time is monotonic, alike in every process, because clocks are skewed."""
    line = json.dumps({"what": what, "pid": os.getpid(), "at": time.monotonic(), **facts})
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
