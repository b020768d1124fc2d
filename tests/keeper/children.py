"""Processes that stand for a worker's children, and what they published."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel.keeper.processes import Process
from kernel.keeper.slots import PublishedClaim

#: A moment no test reaches, monotonic seconds.
FAR = 1e12


@contextmanager
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that does nothing, and see it gone afterwards."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def identity(process: subprocess.Popen[bytes]) -> Process:
    """Return who that process is, as its own look at itself would."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return Process(process.pid, int(fields[19]))


def claim(
    workflow_id: str, token: str, *, deadline: float = FAR, step: str | None = None
) -> PublishedClaim:
    """A claim as a child would publish it."""
    return PublishedClaim(workflow_id, token, deadline, step)
