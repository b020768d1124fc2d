"""Keep a set of child processes running until told to stop, then stop them in order.

```
run(): start all ─▶ watch ──dies──▶ wait (0.5 s, doubled up to 30 s) ─▶ start again
                      └─request_stop()─▶ stage by stage: SIGTERM, wait, SIGKILL ─▶ return
                      └─request_kill()─▶ SIGKILL everything ─▶ return
```

Guarantees that `run` returns only when every child has ended, and that none starts before those it
asks for (`start_after`) are ready. Starting, watching and stopping
happen in the thread that calls `run`, because on Linux children are bound to the thread that
started them. Leaves what the processes are to their specs.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from config.stack.child import Child
from config.stack.spec import ProcessSpec
from config.stack.terminal import Terminal

_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 30.0
#: A child that ran this long, in seconds, starts its backoff afresh.
_STABLE_AFTER = 60.0
_LOOK_EVERY = 0.1


@dataclass(slots=True)
class _Seat:
    """The place of one spec: who runs in it, or when the next may start."""

    spec: ProcessSpec
    child: Child | None = None
    backoff: float = _FIRST_BACKOFF
    start_at: float = 0.0
    restarts: int = 0
    last_words: Sequence[str] = ()


class Supervisor:
    """Runs children from their specs."""

    def __init__(self, specs: Iterable[ProcessSpec], *, terminal: Terminal, cwd: Path) -> None:
        self._seats = {spec.name: _Seat(spec=spec) for spec in specs}
        self._terminal = terminal
        self._cwd = cwd
        self._stopping = threading.Event()
        self._killing = threading.Event()

    def run(self) -> None:
        """Start the children and keep them running until a stop is requested; see the module."""
        try:
            while not self._stopping.wait(_LOOK_EVERY):
                self._start_due()
                self._notice_deaths()
        except BaseException:
            self._killing.set()
            raise
        finally:
            self._stop_all()

    def request_stop(self) -> None:
        """Ask `run` to stop everything in order. On repeat: nothing."""
        self._stopping.set()

    def request_kill(self) -> None:
        """Ask `run` to end everything at once. On repeat: nothing."""
        self._killing.set()
        self._stopping.set()

    @property
    def names(self) -> list[str]:
        """Names of all children."""
        return list(self._seats)

    def pid(self, name: str) -> int | None:
        """Return the process id of the child `name`, or None while it does not run."""
        child = self._seats[name].child
        return child.pid if child is not None and child.exit_status is None else None

    def restarts(self, name: str) -> int:
        """Return how often the child `name` was started again."""
        return self._seats[name].restarts

    def last_lines(self, name: str) -> Sequence[str]:
        """Return the last lines of the child `name`, or of the one before it."""
        seat = self._seats[name]
        return seat.child.last_lines if seat.child is not None else seat.last_words

    def unready(self) -> list[str]:
        """Return the names of the children that are not ready yet."""
        return [
            name
            for name, seat in self._seats.items()
            if seat.child is None or not seat.child.ready.is_set()
        ]

    def _start_due(self) -> None:
        now = time.monotonic()
        for seat in self._seats.values():
            if seat.child is None and now >= seat.start_at and self._may_start(seat.spec):
                seat.child = Child(seat.spec, terminal=self._terminal, cwd=self._cwd)

    def _may_start(self, spec: ProcessSpec) -> bool:
        return not set(spec.start_after) & set(self.unready())

    def _notice_deaths(self) -> None:
        for seat in self._seats.values():
            child = seat.child
            if child is None or child.exit_status is None:
                continue
            if time.monotonic() - child.started_at > _STABLE_AFTER:
                seat.backoff = _FIRST_BACKOFF
            status = child.exit_status
            how = f"signal {-status}" if status < 0 else f"status {status}"
            self._terminal.event(
                seat.spec.name, f"ended with {how}; starting again in {seat.backoff:g} s"
            )
            child.reap()
            seat.child = None
            seat.last_words = child.last_lines
            seat.restarts += 1
            seat.start_at = time.monotonic() + seat.backoff
            seat.backoff = min(seat.backoff * 2, _MAX_BACKOFF)

    def _stop_all(self) -> None:
        running = [seat.child for seat in self._seats.values() if seat.child is not None]
        running.sort(key=lambda child: child.spec.stop_stage)
        for _, stage in groupby(running, key=lambda child: child.spec.stop_stage):
            self._stop_together(list(stage))

    def _stop_together(self, children: list[Child]) -> None:
        for child in children:
            if not self._killing.is_set():
                self._terminal.event(child.spec.name, "stopping")
                child.terminate()
        begun = time.monotonic()
        for child in children:
            while not self._killing.is_set() and not child.wait(_LOOK_EVERY):
                if time.monotonic() - begun > child.spec.stop_timeout:
                    self._terminal.event(
                        child.spec.name,
                        f"did not end within {child.spec.stop_timeout:g} s: killed",
                    )
                    break
            child.reap()
