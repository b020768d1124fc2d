"""Every scenario of the outbox in depth, killed at some of its commands, ends right.

`make crash` kills at all of them, on both sides, and `make test-postgres` at all on PostgreSQL.
"""

import json
import sys
from collections.abc import Callable

import pytest

from tests.crash import share
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import OUTBOX


@pytest.mark.parametrize("scenario", OUTBOX)
def test_death_between_statements_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    seed = share.seed()
    sys.stdout.write(f"BATON_SEED={seed}\n")
    tally = lab.walk_a_part(scenario, share.most(5), seed)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 1, "nothing was killed: the drivers' commands were not seen"
