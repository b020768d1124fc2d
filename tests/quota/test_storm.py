"""Random work with random deaths: what is reserved is live, and nothing is counted twice."""

import random

import pytest

from tests.crash.kills import How, Kill, When
from tests.crash.lab import Lab

#: Acts of one storm, each ended at one of its first commands.
_ACTS = 10
_COMMANDS = 120


@pytest.mark.parametrize("seed", [4, 42, 421])
def test_books_balance_through_a_storm_with_deaths(lab: Lab, seed: int) -> None:
    lots = random.Random(seed)
    kills = [
        Kill(at=lots.randint(1, _COMMANDS), when=lots.choice([*When]), how=lots.choice([*How]))
        for _ in range(_ACTS)
    ]
    assert lab.storm("quota-storm", kills) == [], f"seed {seed}"
