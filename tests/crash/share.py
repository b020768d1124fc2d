"""Which boundaries of a scenario a test kills at: some in `make test`, all in `make crash`.

Guarantees the first and the last one, others at even distances from a drawn offset, so that another
run sees others, on both sides and in both ways. `BATON_CRASH_KILLS` is how many there are at most,
0 for all; `BATON_SEED` repeats a draw. Leaves the killing to the lab.
"""

import os
import secrets
from collections.abc import Iterator
from itertools import product

from tests.crash.kills import How, Kill, When

_SIDES_AND_WAYS = list(product(When, How))


def seed() -> int:
    """Return the number to draw by: the one asked for, or a new one."""
    return int(os.environ.get("BATON_SEED") or secrets.randbits(31))


def most(default: int) -> int:
    """Return how many boundaries a test kills at, where its own answer is `default`."""
    return int(os.environ.get("BATON_CRASH_KILLS") or default)


def boundaries(commands: int, most: int, seed: int) -> list[int]:
    """Return at most so many of the numbers from 1 to `commands`, in order; 0 for all of them."""
    if not 0 < most < commands:
        return list(range(1, commands + 1))
    between = max(most - 2, 1)
    step = -(-(commands - 2) // between)
    return sorted({1, commands, *range(2 + seed % step, commands, step)})


def kills(commands: int, most: int, seed: int) -> Iterator[Kill]:
    """Yield a kill at each boundary: the first before it, the last after it, others by turns."""
    chosen = boundaries(commands, most, seed)
    for turn, at in enumerate(chosen):
        when, how = _SIDES_AND_WAYS[(seed + turn) % len(_SIDES_AND_WAYS)]
        if at == 1:
            when = When.BEFORE
        elif at == commands:
            when = When.AFTER
        yield Kill(at=at, when=when, how=how)
