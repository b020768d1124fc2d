"""Every scenario of durable waiting, killed at some of its commands, ends right.

`make crash` kills at all of them, on both sides (see `tests.crash.share`).
"""

import json
import sys
from collections.abc import Callable

import pytest

from tests.crash import share
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import WAITING


@pytest.mark.parametrize("scenario", WAITING)
def test_death_between_commands_of_a_wait_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    seed = share.seed()
    sys.stdout.write(f"BATON_SEED={seed}\n")
    tally = lab.walk_a_part(scenario, share.most(6), seed)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 1, "nothing was killed: the drivers' commands were not seen"
