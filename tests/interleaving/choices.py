"""Where a schedule's decisions come from: a seed, or every one in turn.

Guarantees that the same source makes the same decisions again. Leaves what is decided to the
schedule.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from tests.interleaving.wire import Command, Fate

#: What becomes of a write that meets trouble; lost answers are the hardest to judge.
_TROUBLES = (Fate.LOSE, Fate.LOSE, Fate.LATE, Fate.DIE_BEFORE, Fate.DIE_AFTER)


class Choices(Protocol):
    """What a schedule asks."""

    def turn(self, waiting: Sequence[str]) -> int:
        """Return whose turn it is, as a position."""

    def fate(self, command: Command) -> Fate:
        """Return what becomes of a command."""


class Random:
    """Decisions drawn from a seed; of all writes a share `trouble` is lost or late.

    A turn mostly goes to whoever had the last one, so that long runs of one actor occur as well.
    Zeros and first ones make the simplest order there is, which is what a search shrinks to.
    """

    def __init__(self, rng: random.Random, *, trouble: float) -> None:
        self._rng = rng
        self._trouble = trouble
        self._sticks = rng.choice([0.8, 0.5, 0.0])
        self._last = ""

    def turn(self, waiting: Sequence[str]) -> int:
        """Return whose turn it is."""
        if self._last not in waiting or self._rng.random() >= self._sticks:
            self._last = self._rng.choice(waiting)
        return waiting.index(self._last)

    def fate(self, command: Command) -> Fate:
        """Return what becomes of a command."""
        if self._rng.random() < 1 - self._trouble:
            return Fate.PASS
        if not command.writes:
            return self._rng.choice([Fate.LOSE, Fate.DIE_BEFORE])
        return self._rng.choice(_TROUBLES)


class Scripted:
    """A given sequence of turns, then always the first; no trouble but what `fates` says."""

    def __init__(self, turns: Sequence[int], fates: dict[int, Fate] | None = None) -> None:
        self.taken: list[tuple[int, int]] = []
        self._turns = turns
        self._fates = fates or {}
        self.commands = 0

    def turn(self, waiting: Sequence[str]) -> int:
        """Return whose turn it is, and keep it with how many could have had it."""
        at = len(self.taken)
        chosen = self._turns[at] if at < len(self._turns) else 0
        self.taken.append((chosen, len(waiting)))
        return chosen

    def fate(self, command: Command) -> Fate:
        """Return what becomes of the n-th command."""
        self.commands += 1
        return self._fates.get(self.commands, Fate.PASS)


def every_order() -> Iterator[Scripted]:
    """Yield sources that together make every sequence of turns there is, each once.

    The caller runs each before it asks for the next one.
    """
    turns: list[int] | None = []
    while turns is not None:
        source = Scripted(turns)
        yield source
        turns = _next(source.taken)


def _next(taken: Sequence[tuple[int, int]]) -> list[int] | None:
    """Count up, the last decision fastest; None when every order has been made."""
    for at in range(len(taken) - 1, -1, -1):
        chosen, among = taken[at]
        if chosen + 1 < among:
            return [*(turn for turn, _ in taken[:at]), chosen + 1]
    return None
