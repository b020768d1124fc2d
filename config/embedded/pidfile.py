"""Tell whether the server recorded in a data folder is still that very process.

Guarantees that a pid used again by another process is not mistaken for the server: the record keeps
the process's start time beside its pid. Leaves ending processes to `process`.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """One process, told apart from a later one that got the same pid."""

    pid: int
    #: Start time in clock ticks after boot (from /proc); empty where there is no /proc.
    started: str

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """Record the process that has `pid` now."""
        return cls(pid=pid, started=_start_time(pid) or "")

    def is_alive(self) -> bool:
        """Say whether this very process still runs; a zombie does not."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        started = _start_time(self.pid)
        if started is None:
            # Without /proc the pid alone has to do; with it, no entry means dead or a zombie.
            return not Path("/proc/self/stat").exists()
        return not self.started or started == self.started


def read(file: Path) -> ProcessId | None:
    """Return the process recorded in `file`, or None when there is no usable record."""
    try:
        record = json.loads(file.read_text(encoding="ascii"))
        return ProcessId(pid=int(record["pid"]), started=str(record["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(file: Path, process: ProcessId) -> None:
    """Record `process`. On repeat: the same file."""
    file.write_text(json.dumps({"pid": process.pid, "started": process.started}), encoding="ascii")


def remove(file: Path) -> None:
    """Forget the record. On repeat: nothing."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()


def _start_time(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name may hold spaces and brackets: count fields after its closing bracket.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]
