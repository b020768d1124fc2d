"""Lets actors run one command at a time, and tells after each what it did.

Guarantees that between two decisions nothing runs but what the last one let through, so that a
source of choices makes the same schedule again. An actor is a process: a kernel with one or more
threads; a schedule goes on when each has a command held back or has ended. Leaves the order to
`choices`, judging to whoever looks on.
"""

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.interleaving.choices import Choices
from tests.interleaving.wire import Command, Died, Fate, Wire

#: Commands of one schedule after which it will never end: somebody asks for ever.
_COMMANDS_MAX = 400
#: How long one actor may run between two commands before the schedule counts as stuck.
_STUCK_SECONDS = 30.0
#: A process of several threads is quiet when for so long no command of it has come or gone.
_QUIET_SECONDS = 0.002

Act = Callable[[], Any]
#: Called after each command with the actor's name and the server's answer, where one is known.
Look = Callable[[str, Command, bytes | None], None]
PAUSE = Command("pause", "", b"")


@dataclass(slots=True)
class _Held:
    """A command that waits to be let through."""

    command: Command
    fate: Fate | None = None


class Process:
    """The gate of one process's commands; `act` is what it does.

    A `wide` one has threads of its own beside the actor's, of which nobody knows when they are at
    rest: it counts as quiet when nothing of it has moved for a while.
    """

    def __init__(self, name: str, client: Any = None, *, wide: bool = False) -> None:
        self.name = name
        self.act: Act = lambda: None
        self.client = client
        self.wide = wide
        self.result: Any = None
        self.changed = threading.Condition()
        self.held: deque[_Held] = deque()
        self.in_flight = 0
        self.stirred = 0
        self._rested_at = -1
        self.is_running = False
        self.fault = ""
        self.is_dead = False
        self.answer: bytes | None = None
        self._again: dict[object, Fate] = {}

    def arrive(self, command: Command) -> Fate:
        """Hold a command back until its turn; the driver's retry shares its command's fate."""
        waiting = _Held(command)
        with self.changed:
            self.stirred += 1
            if self.is_dead:
                raise Died
            self.held.append(waiting)
            self.changed.notify_all()
            if not self.changed.wait_for(lambda: waiting.fate is not None, _STUCK_SECONDS):
                raise AssertionError(f"{self.name} was never given its turn at {command}")
        assert waiting.fate is not None
        return waiting.fate

    def finish(self, answer: bytes | None = None) -> None:
        """Note that the command let through last is over, and what the server said."""
        with self.changed:
            self.answer = answer
            self.stirred += 1
            self.in_flight -= 1
            self.changed.notify_all()

    def pause(self) -> None:
        """Wait for a turn without a command, for what an actor does outside the driver."""
        self.arrive(PAUSE)
        self.finish()

    def begin(self) -> None:
        """Start the actor's thread."""
        self.is_running = True
        threading.Thread(target=self._live, daemon=True).start()

    def kill(self) -> None:
        """End every thread at the command it is held back at, or at its next one."""
        with self.changed:
            self.is_dead = True
            while self.held:
                self.in_flight += 1
                self.held.popleft().fate = Fate.DIE_BEFORE
            self.changed.notify_all()

    def put_down(self) -> None:
        """Kill the process if it has not come to its end, and wait until it is over."""
        if self.is_running:
            self.kill()
        with self.changed:
            self.changed.wait_for(lambda: not self.is_running, _STUCK_SECONDS)

    def await_quiet(self) -> bool:
        """Wait until the process is held back or over; tell whether a command is held back."""
        with self.changed:
            while True:
                assert self.changed.wait_for(self._is_quiet, _STUCK_SECONDS), f"{self.name} hangs"
                if not (self.wide and self.is_running) or self._rests():
                    self._rested_at = self.stirred
                    return bool(self.held)

    def let_through(self, choose: Callable[[Command], Fate]) -> tuple[Command, Fate, bool]:
        """Let the command that came first through; return it, its fate, if it is a retry."""
        with self.changed:
            held = self.held[0]
            key = held.command.retry_key
            again = self._again.pop(key, None)
            is_retry = again is not None
            if again is not None:
                fate = again
            else:
                fate = Fate.PASS if held.command is PAUSE else choose(held.command)
                # The driver retries what was lost once, and that must be lost as well.
                if fate in (Fate.LOSE, Fate.LATE) and key is not None:
                    self._again[key] = fate
            self.is_dead = self.is_dead or fate in (Fate.DIE_BEFORE, Fate.DIE_AFTER)
            # Not before its fate is chosen: a source that gives up leaves it to be put down.
            self.held.popleft()
            self.in_flight += 1
            held.fate = fate
            self.changed.notify_all()
        return held.command, fate, is_retry

    def _is_quiet(self) -> bool:
        return self.in_flight == 0 and (bool(self.held) or not self.is_running)

    def _rests(self) -> bool:
        before = self.stirred
        # Held back and seen to rest, it moves when a command is let through, and that stirs.
        return before == self._rested_at or not self.changed.wait_for(
            lambda: self.stirred != before, _QUIET_SECONDS
        )

    def _live(self) -> None:
        try:
            self.pause()
            self.result = self.act()
        except Died:
            self.result = Died
        except BaseException:  # noqa: BLE001 - whatever it is, the schedule has to tell
            self.fault = traceback.format_exc()
        finally:
            with self.changed:
                self.is_running = False
                self.stirred += 1
                self.changed.notify_all()


class Unheld(Process):
    """A process whose turn it always is: nobody else acts, and nobody schedules."""

    def pause(self) -> None:
        """Go on."""


@dataclass
class Schedule:
    """One run; `story` is what happened, in order."""

    wire: Wire
    choices: Choices
    deliver: Callable[[bytes], None]
    look: Look
    story: list[str] = field(default_factory=list)

    def run(self, processes: Sequence[Process]) -> None:
        """Run the processes to their ends, and deliver what is late by then.

        Raises:
            AssertionError: an actor raised, or never came to a command.
        """
        late: list[tuple[str, Command]] = []
        with contextlib.ExitStack() as stack:
            for process in processes:
                if process.client is not None:
                    stack.enter_context(self.wire.gated(process.client, process))
                process.begin()
                # Whatever ends a schedule half-way, nobody is left held back.
                stack.callback(process.put_down)
            while True:
                ready: list[Process] = [p for p in processes if p.await_quiet()]
                options = [p.name for p in ready] + [f"late {name}" for name, _ in late]
                if not options:
                    break
                if len(self.story) > _COMMANDS_MAX:
                    raise AssertionError(f"I10 still at it after {_COMMANDS_MAX} commands")
                chosen = self.choices.turn(options)
                if chosen < len(ready):
                    self._go_on(ready[chosen], late)
                else:
                    self._arrive_late(late.pop(chosen - len(ready)))
        for process in processes:
            assert not process.fault, f"{process.name} raised\n{process.fault}"

    def _go_on(self, process: Process, late: list[tuple[str, Command]]) -> None:
        process.answer = None
        command, fate, is_retry = process.let_through(self.choices.fate)
        process.await_quiet()
        told = "" if fate is Fate.PASS else f" ({fate}{', again' if is_retry else ''})"
        self.story.append(f"{process.name}: {command}{told}")
        if fate is Fate.LATE and not is_retry:
            late.append((process.name, command))
        if process.is_dead:
            process.kill()  # and every thread that was held back with it
            process.await_quiet()
        if fate not in (Fate.LATE, Fate.DIE_BEFORE):
            # A retry is answered with what the first try did, which may not be so any more.
            self.look(process.name, command, None if is_retry else process.answer)

    def _arrive_late(self, one: tuple[str, Command]) -> None:
        name, command = one
        self.deliver(command.message)
        self.story.append(f"{name}: {command} (late, arrived)")
        self.look(name, command, None)
