"""Every scenario of the outbox in depth, killed after every other command, ends right.

Each scenario walks statements the others walk too, so half of the boundaries are enough here;
`make crash` walks all of them, on both sides, and `make test-postgres` these on PostgreSQL.
"""

import json
from collections.abc import Callable

import pytest

from tests.crash.kills import When
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import OUTBOX


@pytest.mark.parametrize("scenario", OUTBOX)
def test_death_after_every_other_command_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    tally = lab.walk(scenario, When.AFTER, every=2)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 0, "nothing was killed: the drivers' commands were not seen"
