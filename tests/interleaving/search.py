"""Wrong orders that Hypothesis looks for, and makes as short as it can when it has found one.

Guarantees that the same seed looks at the same orders, and that what is told of a wrong one is the
simplest that is still wrong: fewest actors, switches and troubles. Leaves what a case and an order
are made of to `shards.drawn_by`, whose every decision is one that Hypothesis may shrink.
"""

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st

from tests.interleaving.cases import Case, Outcome, Played, end, play
from tests.interleaving.choices import Choices
from tests.interleaving.stage import Stage

Drawing = Callable[[random.Random], tuple[Case, Choices]]
#: Told after each order: how many there have been.
Progress = Callable[[int], None]


@dataclass(slots=True)
class Found:
    """What a search came to: how many orders it looked at, and the simplest wrong one."""

    looked_at: int = 0
    case: Case | None = None
    outcome: Outcome | None = None


class _Even(random.Random):
    """Every value as often as another: of floats, Hypothesis would prefer odd ones."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(0)
        self._source = source

    def random(self) -> float:
        """Return a share, in hundredths: what is coarse is soon as small as it gets."""
        return self._source.randrange(100) / 100

    def choice(self, seq: Any) -> Any:
        """Return one of a sequence, the first one if in doubt."""
        return seq[self._source.randrange(len(seq))]


class _WrongOrderError(Exception):
    """What Hypothesis is given to make smaller."""


def search(
    stage: Stage, drawing: Drawing, *, seed: int, orders: int, progress: Progress = lambda _: None
) -> Found:
    """Look at so many orders at most, from a seed; stop at the first wrong one, and shrink it."""
    found = Found()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=orders,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(st.randoms(use_true_random=False))
    def look(rng: random.Random) -> None:
        case, choices = drawing(_Even(rng))
        try:
            outcome = _judged(stage, play(stage, case, choices))
        except BaseException:
            # An order that Hypothesis gives up half-way leaves no facts to the next one.
            stage.forget([])
            raise
        if found.outcome is None:
            found.looked_at += 1
            progress(found.looked_at)
        if outcome.wrong:
            found.case, found.outcome = case, outcome
            raise _WrongOrderError

    # Flaky or not, somebody saw it: the last story is the one that is told.
    with contextlib.suppress(_WrongOrderError, hypothesis.errors.Flaky):
        look()
    return found


def _judged(stage: Stage, played: Played) -> Outcome:
    """Bring an order to its end, but not one that was wrong before: it is tried again and again."""
    if not played.run.wrong:
        return end(stage, [played])[0]
    stage.forget([played.run])
    return Outcome(played.run.wrong, played.story)
