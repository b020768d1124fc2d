"""The supervisor with small real children: ready, restart, order of the stop, the hard way out."""

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL

from config.embedded.pidfile import ProcessId
from config.stack import ProcessSpec, Supervisor, Terminal
from tests.kit.waiting import eventually

SERVE = """
import signal, sys, threading
ending = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ending.set())
print("serving", flush=True)
ending.wait()
print("bye", flush=True)
"""
IGNORE_SIGTERM = SERVE.replace("lambda *_: ending.set()", "signal.SIG_IGN")
SLOW = "import time; time.sleep(0.5)" + SERVE
WITH_CHILD = """
import subprocess, sys, threading
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
print("child", child.pid, flush=True)
threading.Event().wait()
"""


def spec(
    name: str, code: str = SERVE, *, stage: int = 0, ready: str | None = "serving"
) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        command=(sys.executable, "-c", code),
        ready_pattern=ready,
        stop_stage=stage,
        stop_timeout=0.3 if code == IGNORE_SIGTERM else 10.0,
    )


@contextmanager
def running(*specs: ProcessSpec) -> Iterator[tuple[Supervisor, io.StringIO]]:
    """Run a supervisor in a thread; stop it and wait for its end afterwards."""
    said = io.StringIO()
    supervisor = Supervisor(specs, terminal=Terminal(said), cwd=Path.cwd())
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        eventually(lambda: not supervisor.unready(), message="children never got ready")
        yield supervisor, said
    finally:
        supervisor.request_stop()
        thread.join(30.0)
        assert not thread.is_alive(), said.getvalue()


def test_lines_of_children_come_out_under_their_names() -> None:
    with running(spec("one"), spec("two")) as (_, said):
        pass
    lines = said.getvalue().splitlines()
    assert "one       | serving" in lines
    assert "two       | bye" in lines


def test_a_child_starts_once_those_it_asks_for_are_ready() -> None:
    late = replace(spec("late"), start_after=("early",))
    with running(late, spec("early", SLOW)) as (_, said):
        pass
    lines = said.getvalue().splitlines()
    assert lines.index("early     | serving") < lines.index("late      | serving")


def test_a_child_that_dies_is_started_again_and_said_so() -> None:
    with running(spec("one")) as (supervisor, said):
        first = supervisor.pid("one")
        assert first is not None
        os.kill(first, SIGKILL)
        eventually(lambda: supervisor.restarts("one") == 1 and supervisor.pid("one"))
        assert supervisor.pid("one") != first
        assert "ended with signal 9; starting again in 0.5 s" in said.getvalue()


def test_a_child_that_keeps_dying_is_started_later_each_time() -> None:
    with running(spec("one", "print('serving')")) as (supervisor, said):
        eventually(lambda: supervisor.restarts("one") >= 2, message="never started again")
    assert said.getvalue().count("starting again in 0.5 s") == 1
    assert said.getvalue().count("starting again in 1 s") == 1


def test_the_stop_goes_stage_by_stage_and_waits_for_each() -> None:
    with running(spec("last", stage=2), spec("first", stage=0), spec("middle", stage=1)) as (
        _,
        said,
    ):
        pass
    lines = said.getvalue().splitlines()
    marks = [line.replace(" ", "") for line in lines if line.endswith(("stopping", "bye"))]
    assert marks == [
        f"{name}|{word}" for name in ("first", "middle", "last") for word in ("stopping", "bye")
    ]


def test_a_child_that_ignores_the_stop_is_killed_after_its_timeout() -> None:
    with running(spec("deaf", IGNORE_SIGTERM)) as (_, said):
        pass
    assert "did not end within 0.3 s: killed" in said.getvalue()


def test_a_kill_does_not_wait_for_anybody() -> None:
    stubborn = ProcessSpec(
        name="deaf",
        command=(sys.executable, "-c", IGNORE_SIGTERM),
        ready_pattern="serving",
        stop_timeout=3600.0,
    )
    with running(stubborn) as (supervisor, said):
        supervisor.request_kill()
    assert "did not end" not in said.getvalue()


def test_what_a_killed_child_had_started_goes_with_it() -> None:
    with running(spec("parent", WITH_CHILD, ready="child")) as (supervisor, _):
        line = supervisor.last_lines("parent")[0]
        grandchild = ProcessId.of(int(line.split()[1]))
        assert grandchild.is_alive()
        parent = supervisor.pid("parent")
        assert parent is not None
        os.kill(parent, SIGKILL)
        eventually(lambda: not grandchild.is_alive(), message="an orphan stayed")
