"""Run Python children with their own process group, read their lines, and end them for certain.

Guarantees that a child does not outlive the test process that started it (on Linux) and that its
whole group can be signalled without touching the tests.
Leaves what the child says and means to the test.
"""

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

from config.embedded.process import die_with_parent

ROOT = Path(__file__).resolve().parents[2]

#: What to change in a child's environment; None takes a variable away.
Environment = Mapping[str, str | None]


class Child:
    """A child process whose combined output is read line by line; also a context manager."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Environment | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.lines: list[str] = []
        self._fresh: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            list(arguments),
            cwd=cwd,
            env=environment(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=die_with_parent(SIGKILL),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        """Everything read so far."""
        return "\n".join(self.lines)

    def wait_for_line(self, pattern: str, timeout: float = 30.0) -> re.Match[str]:
        """Return the match of the next line that contains `pattern`.

        Raises: AssertionError, with the child's output, when it ends or `timeout` passes first.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._fresh.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"no line like {pattern!r} within {timeout:g} s:\n{self.output}"
                ) from None
            if line is None:
                raise AssertionError(f"ended before a line like {pattern!r}:\n{self.output}")
            if match := re.search(pattern, line):
                return match

    def wait(self, timeout: float = 30.0) -> int:
        """Wait for the end and return the exit status. Raises: AssertionError on timeout."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout:g} s:\n{self.output}") from None
        self._reader.join(5.0)
        return status

    def send(self, number: Signals) -> None:
        """Send a signal to the child only."""
        self.process.send_signal(number)

    def send_group(self, number: Signals) -> None:
        """Send a signal to the child and everything it started in its group."""
        os.killpg(self.process.pid, number)

    def kill_group(self) -> None:
        """SIGKILL the whole group and reap the child. On repeat: nothing."""
        with contextlib.suppress(ProcessLookupError):
            self.send_group(SIGKILL)
        self.wait(10.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_group()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.rstrip("\n")
            self.lines.append(text)
            self._fresh.put(text)
        self._fresh.put(None)


def environment(changes: Environment) -> dict[str, str]:
    """Return this process's environment with `changes` applied."""
    merged = {**os.environ, "PYTHONUNBUFFERED": "1", **changes}
    return {name: value for name, value in merged.items() if value is not None}


def python(*arguments: str, env: Environment | None = None) -> Child:
    """Start `python ARGUMENTS…` from the repository's root."""
    return Child([sys.executable, *arguments], env=env)


def python_code(code: str, *arguments: str, env: Environment | None = None) -> Child:
    """Start a child that runs `code`, with `arguments` in its `sys.argv[1:]`."""
    return Child([sys.executable, "-c", code, *arguments], env=env)
