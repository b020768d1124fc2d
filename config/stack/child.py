"""One running child process of the supervisor, its output and its end.

Guarantees that the child has a session of its own (Ctrl-C does not reach it), that its output is
read to the end, and that after `reap` no process of its group is left.
Leaves when to start and stop to `supervisor`.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from config.embedded.process import die_with_parent
from config.stack.spec import ProcessSpec
from config.stack.terminal import Terminal

_KEPT_LINES = 40


class Child:
    """A started `ProcessSpec`."""

    def __init__(self, spec: ProcessSpec, *, terminal: Terminal, cwd: Path) -> None:
        self.spec = spec
        self.started_at = time.monotonic()
        self.ready = threading.Event()
        #: The last lines it printed, for explaining a failure.
        self.last_lines: list[str] = []
        self._terminal = terminal
        self._process = subprocess.Popen(
            spec.command,
            cwd=cwd,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **spec.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        if spec.ready_pattern is None:
            self.ready.set()
        self._reader = threading.Thread(target=self._read, daemon=True, name=f"read-{spec.name}")
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask the main process, not its children, to end. On repeat: asks again."""
        # A SIGTERM to the whole group would cut off steps running in a worker's pool.
        self._process.terminate()

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; say whether it ended."""
        try:
            self._process.wait(max(0.0, timeout))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the whole group at once. On repeat: nothing."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> None:
        """Take away what is left of an ended child. On repeat: nothing."""
        self.kill()
        self._process.wait()
        self._reader.join(2.0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        pattern = self.spec.ready_pattern
        with self._process.stdout as output:
            for line in output:
                text = line.rstrip()
                self.last_lines = [*self.last_lines, text][-_KEPT_LINES:]
                self._terminal.line(self.spec.name, text)
                if pattern is not None and re.search(pattern, text):
                    self.ready.set()
