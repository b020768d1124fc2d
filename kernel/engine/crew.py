"""Runs several claims of one process side by side, each in a thread of its own (design 1.8).

An interrupted claim may be what killed its process. It waits until every other claim of the crew is
home, and nothing is taken beside it, so that a second death names it and no innocent counts along
(design 1.5). Its lease is kept while it waits.

Guarantees that whoever leaves the crew leaves nothing running. Leaves to others: which claims, how
many (`kernel.engine.drain`), what running one means (`kernel.engine.running`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from kernel.engine.claims import HeldClaim
from kernel.engine.machine import Machine
from kernel.model import StepStatus, WorkflowInstance

#: How often a claim that waits for its turn says that it is alive, and heeds a stop, seconds.
_WAITING_TURN: Final = 1.0


class Crew:
    """The claims of one drain; `run(held)` carries one as far as it goes.

    One that is followed by another keeps its slot for it.
    """

    def __init__(self, machine: Machine, run: Callable[[HeldClaim], None]) -> None:
        self._machine = machine
        self._run = run
        self._changed = threading.Condition()
        self._by_queue: Counter[str] = Counter()
        self._side_by_side = 0
        self._suspects = 0
        self._is_suspect_running = False
        self._lacks_threads = False
        self._finished = 0
        self._errors: list[BaseException] = []

    def add(self, held: HeldClaim) -> None:
        """Start a claim that was just taken; if it cannot be, `disband` tells."""
        is_suspect = not held.begun and was_interrupted(held.instance)
        with self._changed:
            self._by_queue[held.instance.queue] += 1
            if is_suspect:
                self._suspects += 1
            else:
                self._side_by_side += 1
        try:
            self._machine.motion.add(1)  # from here on: its thread may come late
            self._machine.claim_threads.submit(lambda: self._carry(held, is_suspect=is_suspect))
        except BaseException as exc:  # noqa: BLE001 - raised again for whoever drains
            # No thread to be had: its lease runs out. Those taken with it may still find one.
            with self._changed:
                self._errors.append(exc)
                self._lacks_threads = True
            self._home(held, is_suspect=is_suspect)

    def running(self, queue: str | None = None) -> int:
        """Return how many claims are not home yet, of one queue or of all."""
        with self._changed:
            return self._by_queue[queue] if queue is not None else self._by_queue.total()

    def takes_more(self) -> bool:
        """Tell whether new claims may be taken: not beside one interrupted, nor without threads."""
        with self._changed:
            return self._suspects == 0 and not self._lacks_threads

    @property
    def finished(self) -> int:
        """How many claims have come home so far."""
        return self._finished

    def await_home(self, finished: int, seconds: float | None) -> bool:
        """Wait until more than `finished` claims are home, at most `seconds`; tell whether so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._finished > finished, timeout=seconds)

    def disband(self) -> None:
        """Wait until every claim is home. Raises: the first error that one of them raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._by_queue.total() == 0)
            errors, self._errors = self._errors, []
        if errors:
            raise errors[0]

    def _carry(self, held: HeldClaim, *, is_suspect: bool) -> None:
        has_turn = False
        following: HeldClaim | None = held
        try:
            while following is not None:
                current = following
                try:
                    with self._machine.keeper.keeping(current.live):
                        has_turn = has_turn or (is_suspect and self._await_turn(current))
                        self._run(current)
                except BaseException as exc:  # noqa: BLE001 - raised again for whoever drains
                    with self._changed:
                        self._errors.append(exc)
                following = current.following
        finally:
            self._home(held, is_suspect=is_suspect, has_turn=has_turn)

    def _home(self, held: HeldClaim, *, is_suspect: bool, has_turn: bool = False) -> None:
        self._machine.motion.add(-1)
        with self._changed:
            self._by_queue[held.instance.queue] -= 1
            self._finished += 1
            if has_turn:
                self._is_suspect_running = False
            if is_suspect:
                self._suspects -= 1
            else:
                self._side_by_side -= 1
            self._changed.notify_all()

    def _await_turn(self, held: HeldClaim) -> bool:
        """Wait until this claim may run alone; False: it has nothing left to run."""
        with self._changed:
            while self._side_by_side or self._is_suspect_running:
                if held.live.lost.is_set() or self._machine.is_stopping():
                    return False
                held.live.working()
                with self._machine.motion.resting:
                    self._changed.wait(_WAITING_TURN)
            self._is_suspect_running = True
            return True


def was_interrupted(instance: WorkflowInstance) -> bool:
    """Tell whether an earlier claim ended inside this instance's code."""
    if instance.finalizer is not None and instance.finalizer.started_at is not None:
        return True
    return any(state.status is StepStatus.RUNNING for state in instance.steps.values())
