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
    *arguments: str, environment: Mapping[str, str], ready: str | None = " ready."
) -> Iterator[subprocess.Popen[str]]:
    """Run a Celery process of the project, from the moment it serves until the block ends."""
    command = [sys.executable, "-m", "celery", "-A", "config", *arguments]
    with _running(command, environment, stderr=subprocess.PIPE) as child:
        if ready is not None:
            _await_ready(child, ready)
        yield child


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
        env={**os.environ, **environment, "BATON_LOG_LEVEL": "INFO", "BATON_LOG_FORMAT": "text"},
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


def _await_ready(child: subprocess.Popen[str], text: str) -> None:
    """Wait for a line with `text`, then go on reading so that the pipe never fills up."""
    said: list[str] = []
    found = threading.Event()

    def read() -> None:
        assert child.stderr is not None
        for line in child.stderr:
            if not found.is_set():
                said.append(line)
                if text in line:
                    found.set()

    threading.Thread(target=read, daemon=True).start()
    if not found.wait(_START_TIMEOUT):
        raise RuntimeError("a Celery process did not get ready:\n" + "".join(said))
