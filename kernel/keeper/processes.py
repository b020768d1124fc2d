"""Which process is meant, and whether it is dead: a pid alone may be somebody else by now."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STATE_FIELD: Final = 0
_START_FIELD: Final = 19


@dataclass(frozen=True, slots=True)
class Process:
    """A process by pid and start time (kernel ticks since boot)."""

    pid: int
    started: int

    @classmethod
    def current(cls) -> Process:
        """Return this process."""
        pid = os.getpid()
        fields = _stat(pid)
        assert fields is not None, "this process is in /proc"
        return cls(pid, int(fields[_START_FIELD]))

    def is_dead(self) -> bool:
        """Tell whether it has ended; a zombie counts as dead, whoever forgot to reap it."""
        fields = _stat(self.pid)
        if fields is None or int(fields[_START_FIELD]) != self.started:
            return True
        return fields[_STATE_FIELD] in ("Z", "X")

    def kill(self) -> None:
        """Send SIGKILL, only if it is still the process that is meant. On repeat: nothing."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # The handle keeps meaning one process, so a pid reused after this look is not hit.
            if not self.is_dead():
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _stat(pid: int) -> list[str] | None:
    """Return the fields after the command name, which may itself hold spaces and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
