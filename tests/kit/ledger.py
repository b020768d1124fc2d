"""A file of facts that no outage reaches, one JSON object a line, written by many processes.

Guarantees that a line is whole: one write, appended. Leaves to others: what the facts say.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def append(path: str | Path, facts: Mapping[str, object]) -> None:
    """Add a line."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, json.dumps(facts).encode() + b"\n")
    finally:
        os.close(handle)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines so far, oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]
