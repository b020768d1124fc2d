"""Every scenario, killed at some of its commands, ends right.

Which ones is drawn anew for each run, among them the first and the last; `make crash` kills at all
of them on both sides, `make crash ARGS=--every-way` in both ways too (see `tests.crash.share`).
"""

import json
import sys
from collections.abc import Callable

import pytest

from tests.crash import share
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import MATRIX


@pytest.mark.parametrize("scenario", MATRIX)
def test_death_between_commands_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    seed = share.seed()
    sys.stdout.write(f"BATON_SEED={seed}\n")
    tally = lab.walk_a_part(scenario, share.most(7), seed)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 1, "nothing was killed: the drivers' commands were not seen"
