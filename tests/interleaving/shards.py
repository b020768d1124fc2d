"""One process's share of many orders, with a stage of its own.

Guarantees that what it tells of a violation is enough to run it again. Leaves adding up, and the
servers, to the caller.
"""

import gc
import logging
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.interleaving.cases import Case, Outcome, Played, end, play
from tests.interleaving.choices import Choices, Random, every_order
from tests.interleaving.crowds import (
    TAKEN_OVER,
    crowd,
    grouped,
    in_part,
    pairs,
    permit_crowd,
    permit_pairs,
)
from tests.interleaving.search import search
from tests.interleaving.stage import Stage

#: Share of commands that meet trouble, in the half of all schedules that know any.
_TROUBLE = 0.06
#: Share of schedules in which one holder takes over from another, which crowds seldom do, and of
#: those in which instances share resources.
_TAKEN_OVER = 0.2
_LIMITED = 0.2
#: And, where workers run several claims, of those that are about groups.
_GROUPED = 0.3
#: Stories told in full; more violations than these are usually the same one.
_TOLD = 5
#: Orders of one pair: all there are, but of signals and ticks, of which there are thousands.
_ORDERS_MAX = 300
#: The same where permits are asked for, which takes more commands: those of one actor after the
#: other, and as many drawn ones.
_LIMITED_ORDERS_MAX = 40
#: Instances that are brought to their ends together.
_TOGETHER = 60
#: What runs every order of pairs again.
_PAIRS_AGAIN = 'SCHEDULES=0 ARGS="--search 0"'
#: Objects after which garbage is looked for; a schedule leaves little behind.
_GARBAGE_AFTER = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which schedules: seeds from `first` to before `last`, and every `jobs`-th pair if wanted.

    And how many orders at most are searched, from the seed `first` on.
    """

    first: int
    last: int
    number: int
    jobs: int
    pairs: bool
    slots: int
    story: bool
    searched: int = 0


@dataclass(slots=True)
class Sum:
    """What was run, how much of it was wrong, and how often what had to be met was."""

    schedules: int = 0
    violations: int = 0
    counts: Counter[str] = field(default_factory=Counter)


#: Schedules and violations so far, two numbers a process; set in each process of a pool.
_SO_FAR: list[Any] = []


def share_sums(so_far: Any) -> None:
    """Let this process say in an array of numbers how far it is, and leave Ctrl-C to the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _SO_FAR.append(so_far)


def run_share(url: str, share: Share) -> Sum:
    """Run a share on the server at `url`."""
    logging.disable(logging.CRITICAL)
    gc.set_threshold(_GARBAGE_AFTER)
    total = Sum()
    with Stage(url, slots=share.slots).opened() as stage:
        gathered: list[tuple[str, Played]] = []
        for name, case, choices in _schedules(share):
            one = play(stage, case, choices)
            one.run.put_aside()
            gathered.append((name, one))
            if sum(len(each.run.ids) for _, each in gathered) >= _TOGETHER:
                _end(stage, gathered, total, share)
        if gathered:
            _end(stage, gathered, total, share)
        if share.searched:
            _search(stage, total, share)
    return total


def drawn(seed: int, *, slots: int = 1) -> tuple[Case, Choices]:
    """Return the case and the order a seed stands for, where workers run so many claims."""
    return drawn_by(random.Random(seed), slots=slots)


def drawn_by(rng: random.Random, *, slots: int = 1) -> tuple[Case, Choices]:
    """Return a case and its order, each decision of which a source of randomness makes."""
    trouble = 0.0 if rng.random() < 0.5 else _TROUBLE
    if slots > 1 and rng.random() < _GROUPED:
        case = grouped(rng)
    elif rng.random() < _LIMITED:
        case = permit_crowd(rng)
    else:
        case = rng.choice(TAKEN_OVER) if rng.random() < _TAKEN_OVER else crowd(rng)
    return in_part(rng, case) if slots > 1 else case, Random(rng, trouble=trouble)


def told(name: str, case: Case, outcome: Outcome) -> str:
    """Return the story of a schedule."""
    lines = [f"{name}: {case}", *(f"  {line}" for line in outcome.story)]
    return "\n".join([*lines, *(f"  !! {sentence}" for sentence in outcome.wrong)])


def limited_orders() -> Iterator[Choices]:
    """Yield the first orders there are, then drawn ones: with so many commands there is no end."""
    for _, order in zip(range(_LIMITED_ORDERS_MAX), every_order(), strict=False):
        yield order
    for seed in range(_LIMITED_ORDERS_MAX):
        yield Random(random.Random(seed), trouble=0.0)


def _schedules(share: Share) -> Iterator[tuple[str, Case, Choices]]:
    for case in list(pairs())[share.number :: share.jobs] if share.pairs else ():
        for at, order in zip(range(_ORDERS_MAX), every_order(), strict=False):
            yield f"order {at} of {_PAIRS_AGAIN}", case, order
    for case in list(permit_pairs())[share.number :: share.jobs] if share.pairs else ():
        for at, choices in enumerate(limited_orders()):
            yield f"limited order {at} of {_PAIRS_AGAIN}", case, choices
    for seed in range(share.first, share.last):
        yield f"SEED={seed} SCHEDULES=1", *drawn(seed, slots=share.slots)


def _end(stage: Stage, gathered: list[tuple[str, Played]], total: Sum, share: Share) -> None:
    outcomes = end(stage, [played for _, played in gathered])
    for (name, played), outcome in zip(gathered, outcomes, strict=True):
        total.schedules += 1
        total.violations += bool(outcome.wrong)
        total.counts += played.run.counts
        if share.story or (outcome.wrong and total.violations <= _TOLD):
            sys.stdout.write(told(name, played.case, outcome) + "\n")
            sys.stdout.flush()
    gathered.clear()
    _tell_how_far(total, share)


def _search(stage: Stage, total: Sum, share: Share) -> None:
    """Look for a wrong order; what is tried to make it shorter is not counted."""
    before = total.schedules

    def progress(looked_at: int) -> None:
        total.schedules = before + looked_at
        _tell_how_far(total, share)

    drawing = partial(drawn_by, slots=share.slots)
    found = search(stage, drawing, seed=share.first, orders=share.searched, progress=progress)
    if found.case is not None and found.outcome is not None:
        total.violations += 1
        again = f'SEED={share.first} SCHEDULES=0 ARGS="--no-pairs --search {share.searched}"'
        sys.stdout.write(told(f"simplest found by {again}", found.case, found.outcome) + "\n")
        sys.stdout.flush()


def _tell_how_far(total: Sum, share: Share) -> None:
    for so_far in _SO_FAR:
        so_far[2 * share.number], so_far[2 * share.number + 1] = total.schedules, total.violations
