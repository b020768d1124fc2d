"""Child processes of a measurement: started together, released at once, ended for certain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

from config.embedded.process import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
READY = "ready"
#: Seconds a worker may take to start, and to stop.
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 60.0


def measure_together(
    mode: str, *arguments: str, processes: int, environment: Mapping[str, str]
) -> tuple[list[dict[str, Any]], float]:
    """Run `bench.child MODE` in several processes at once; return their answers and seconds.

    The clock runs from the moment all are ready and released until the last one has answered.

    Raises:
        RuntimeError: a child failed; its output is on the terminal.
    """
    command = [sys.executable, "-m", "bench.child", mode, *arguments]
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                _running(command, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(processes)
        ]
        for child in children:
            if _line(child) != READY:
                raise RuntimeError(f"bench.child {mode} did not get ready")
        begun = time.perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [json.loads(_line(child) or "null") for child in children]
        seconds = time.perf_counter() - begun
    if None in answers:
        raise RuntimeError(f"bench.child {mode} ended without an answer")
    return answers, seconds


@contextmanager
def celery(
    *commands: Sequence[str], environment: Mapping[str, str], app: str = "config"
) -> Iterator[list[subprocess.Popen[str]]]:
    """Run Celery processes of the project, or of another app, side by side until the block ends.

    Each command is the arguments of one; the block begins when all workers among them serve.
    """
    base = [sys.executable, "-m", "celery", "-A", app]
    with ExitStack() as stack:
        children = [
            stack.enter_context(_running([*base, *command], environment, stderr=subprocess.PIPE))
            for command in commands
        ]
        said = [_Output(child) for child in children]
        for command, output in zip(commands, said, strict=True):
            if command[0] == "worker":
                output.await_line(" ready.")
        yield children
        for child in children:
            child.send_signal(SIGTERM)


def worker(name: str, queue: str, *, concurrency: int) -> tuple[str, ...]:
    """Return the arguments of a worker as `make up` starts it, plus the no-op task."""
    options = ("-Q", queue, "-n", f"{name}@%h", "-c", str(concurrency), "-I", "bench.tasks")
    return ("worker", *options, "--without-gossip", "--without-mingle", "--loglevel", "INFO")


@contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], **pipes: Any
) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env={
            **os.environ,
            **environment,
            "BATON_LOG_LEVEL": "INFO",
            "BATON_LOG_FORMAT": "text",
            "MALLOC_ARENA_MAX": "2",  # as `make up` starts its workers
        },
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent(SIGKILL),  # noqa: PLW1509 - no thread of ours holds locks then
        **{"stdout": subprocess.DEVNULL, **pipes},
    )
    try:
        yield child
    finally:
        _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    child.send_signal(SIGTERM)
    try:
        child.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, SIGKILL)
        child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


class _Output:
    """What a child says, read for as long as it lives, so that its pipe never fills up."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self._said: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_line(self, text: str) -> None:
        """Wait for a line with `text`. Raises: RuntimeError with all that was said instead."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: any(text in line for line in self._said) or not self._reader.is_alive(),
                timeout=_START_TIMEOUT,
            )
            if not found or not any(text in line for line in self._said):
                raise RuntimeError("a Celery process did not get ready:\n" + "".join(self._said))

    def _read(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            with self._changed:
                self._said.append(line)
                self._changed.notify_all()
