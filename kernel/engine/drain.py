"""Runs what is due: what a wakeup does (design 2.2), one claim at a time or several (1.8).

A process with one slot runs each claim in the thread that drains. With more it fills free slots
with groups of candidates and goes on looking while any claim runs: at once when one comes home,
else after a pause that grows. An idle process looks into MongoDB as well: a hint may be lost.

Guarantees that no more claims run than there are slots, and that none is left running when a call
returns. Leaves to others: taking (`kernel.engine.taking`), running (`kernel.engine.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from kernel.engine.budget import Budget
from kernel.engine.claims import HeldClaim
from kernel.engine.crew import Crew
from kernel.engine.machine import Machine
from kernel.engine.passing import Passing, may_follow
from kernel.engine.running import run_claim
from kernel.engine.taking import Taker
from kernel.errors import HintsUnavailable
from kernel.protocol.resources import PermitOwner
from kernel.store.standing import Standing

#: Pauses between two looks for more while some slots are free and others are at work, seconds.
_LOOK_FIRST: Final = 0.1
_LOOK_LAST: Final = 1.0

#: Takes up to so many claims of a queue.
Take = Callable[[str, int], list[HeldClaim]]


class Drain:
    """Takes and runs claims of this process's definitions.

    `slots(queue)` is how many claims of a queue this process runs at once, 1 or more.
    """

    def __init__(self, machine: Machine, taker: Taker, *, slots: Callable[[str], int]) -> None:
        self._machine = machine
        self._taker = taker
        self._slots = slots
        self._passing = Passing(machine, taker.served)

    def is_wide(self, queues: Sequence[str]) -> bool:
        """Tell whether claims of these queues run side by side."""
        return any(self._slots(queue) > 1 for queue in queues)

    def run_once(self, queues: Sequence[str]) -> bool:
        """Claim and run at most one instance; tell whether one ran."""
        if self._machine.is_stopping():
            return False
        return self._run_all(queues, self._taker.take, 1, None, alone=True) > 0

    def drain(
        self,
        queues: Sequence[str],
        *,
        max_claims: int | None = None,
        max_seconds: float | None = None,
    ) -> int:
        """Run what is due until nothing is, or the budget is used up; return how many ran."""
        if not self._machine.is_stopping():
            for queue in queues:
                with suppress(HintsUnavailable):
                    self._machine.hints.hints.clear_bell(queue)
        ran = self._run_all(queues, self._taker.take, max_claims, max_seconds)
        # Left by the budget, by a stop request, or behind too many stale candidates.
        for queue in queues:
            self.ring_if_due(queue)
        return ran

    def poll(self, queues: Sequence[str]) -> int:
        """Drain, then run what is due in MongoDB without standing in a lane; return how many."""
        ran = self.drain(queues)
        return ran + self._run_all(queues, self._take_anywhere, None, None)

    def ring_if_due(self, queue: str) -> None:
        """Ring the queue's bell if another candidate is due. On repeat: it rings once."""
        with suppress(HintsUnavailable):
            if self._machine.hints.hints.has_due(queue):
                self._machine.hints.ring(queue)

    def _run(self, held: HeldClaim, budget: Budget, may_take: Callable[[], bool]) -> None:
        definition = self._taker.served()[held.instance.definition_fingerprint]

        def to_next(resource: str, owner: PermitOwner) -> HeldClaim | None:
            def may(waiter: Standing) -> bool:
                return may_take() and may_follow(self._machine, budget.queues, waiter)

            # Its place in the budget is kept first: several claims come home at once.
            has_place = budget.spend()
            following = self._passing.to_next(resource, owner, may if has_place else _nobody)
            if has_place and following is None:
                budget.give_back()
            return following

        run_claim(self._machine, held, definition, to_next)

    def _take_anywhere(self, queue: str, count: int) -> list[HeldClaim]:
        held = self._taker.take(queue, count)
        return held or self._taker.take_from_store([queue], count)

    def _run_all(
        self,
        queues: Sequence[str],
        take: Take,
        max_claims: int | None,
        max_seconds: float | None,
        *,
        alone: bool = False,
    ) -> int:
        budget = Budget(tuple(queues), max_claims, max_seconds)
        is_wide = self.is_wide(queues) and not alone
        run = self._run_side_by_side if is_wide else self._run_one_by_one
        try:
            run(take, budget)
        finally:
            self._machine.permits.handing_on.settle()
            self._machine.hints.forget_ended()
        return budget.spent

    def _run_one_by_one(self, take: Take, budget: Budget) -> None:
        while budget.left():
            following = self._next(_turned(budget.queues, budget.spent), take)
            if following is None:
                break
            budget.spend()
            self._run_in_turn(following, budget)

    def _run_in_turn(self, held: HeldClaim, budget: Budget) -> None:
        """Run a claim and those its slot was passed on to, whatever one of them raises."""
        errors: list[BaseException] = []
        following: HeldClaim | None = held
        while following is not None:
            try:
                self._run(following, budget, lambda: True)
            except BaseException as exc:  # noqa: BLE001 - raised when all have run
                errors.append(exc)
            following = following.following
        if errors:
            raise errors[0]

    def _next(self, queues: Sequence[str], take: Take) -> HeldClaim | None:
        for queue in queues:
            if self._machine.is_stopping():
                return None
            if held := take(queue, 1):
                return held[0]
        return None

    def _run_side_by_side(self, take: Take, budget: Budget) -> None:
        crew = Crew(self._machine, lambda held: self._run(held, budget, crew.takes_more))
        pause = _LOOK_FIRST
        try:
            while budget.left() and not self._machine.is_stopping():
                finished = crew.finished
                queues = _turned(budget.queues, budget.spent)
                taken, is_full = self._fill(crew, queues, take, budget)
                if taken:
                    pause = _LOOK_FIRST
                elif not crew.running():
                    break
                elif crew.await_home(finished, None if is_full else pause):
                    self._machine.motion.await_rest()  # others may come home by the same write
                    pause = _LOOK_FIRST
                else:
                    pause = min(2 * pause, _LOOK_LAST)
        finally:
            crew.disband()

    def _fill(
        self, crew: Crew, queues: Sequence[str], take: Take, budget: Budget
    ) -> tuple[int, bool]:
        """Fill free slots; return how many claims were taken, and whether none was free."""
        taken, is_full = 0, True
        slots = max(self._slots(queue) for queue in queues)
        for queue in queues:
            free = min(
                slots - crew.running(), self._slots(queue) - crew.running(queue), budget.left()
            )
            if free < 1 or not crew.takes_more():
                continue
            is_full = False
            with self._machine.motion.moving:
                for held in take(queue, free):
                    budget.spend(even_if_over=True)
                    crew.add(held)
                    taken += 1
        return taken, is_full


def _nobody(_: Standing) -> bool:
    return False


def _turned(queues: Sequence[str], turn: int) -> Sequence[str]:
    """Begin with another queue each time, so that none waits behind a busy one."""
    start = turn % len(queues) if queues else 0
    return [*queues[start:], *queues[:start]]
