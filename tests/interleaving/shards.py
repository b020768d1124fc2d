"""One process's share of many orders, with a stage of its own.

Guarantees that what it tells of a violation is enough to run it again. Leaves adding up, and the
servers, to the caller.
"""

import logging
import random
import sys
from dataclasses import dataclass

from tests.interleaving.cases import TAKEN_OVER, Case, Outcome, crowd, pairs, run_case
from tests.interleaving.choices import Choices, Random, every_order
from tests.interleaving.stage import Stage

#: Share of commands that meet trouble, in the half of all schedules that know any.
_TROUBLE = 0.06
#: Share of schedules in which one holder takes over from another, which crowds seldom do.
_TAKEN_OVER = 0.2
#: Stories told in full; more violations than these are usually the same one.
_TOLD = 5
#: Orders of one pair: all there are, but of signals and ticks, of which there are thousands.
_ORDERS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which schedules: seeds from `first` to before `last`, and every `jobs`-th pair if wanted."""

    first: int
    last: int
    number: int
    jobs: int
    pairs: bool
    slots: int
    story: bool


@dataclass(slots=True)
class Sum:
    """What was run, and how much of it was wrong."""

    schedules: int = 0
    violations: int = 0


def run_share(url: str, share: Share) -> Sum:
    """Run a share on the server at `url`."""
    logging.disable(logging.CRITICAL)
    total = Sum()
    with Stage(url, slots=share.slots).opened() as stage:
        for case in list(pairs())[share.number :: share.jobs] if share.pairs else ():
            for at, order in zip(range(_ORDERS_MAX), every_order(), strict=False):
                _add(total, f"order {at}", case, run_case(stage, case, order), share)
        for seed in range(share.first, share.last):
            case, choices = drawn(seed)
            outcome = run_case(stage, case, choices)
            _add(total, f"SEED={seed} SCHEDULES=1", case, outcome, share)
    return total


def drawn(seed: int) -> tuple[Case, Choices]:
    """Return the case and the order a seed stands for."""
    rng = random.Random(seed)
    trouble = _TROUBLE if rng.random() < 0.5 else 0.0
    case = rng.choice(TAKEN_OVER) if rng.random() < _TAKEN_OVER else crowd(rng)
    return case, Random(rng, trouble=trouble)


def told(name: str, case: Case, outcome: Outcome) -> str:
    """Return the story of a schedule."""
    lines = [f"{name}: {case}", *(f"  {line}" for line in outcome.story)]
    return "\n".join([*lines, *(f"  !! {sentence}" for sentence in outcome.wrong)])


def _add(total: Sum, name: str, case: Case, outcome: Outcome, share: Share) -> None:
    total.schedules += 1
    total.violations += bool(outcome.wrong)
    if share.story or (outcome.wrong and total.violations <= _TOLD):
        sys.stdout.write(told(name, case, outcome) + "\n")
        sys.stdout.flush()
