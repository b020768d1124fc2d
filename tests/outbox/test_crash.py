"""Every scenario of the outbox in depth, killed after every command, ends right.

A kill after one command and one before the next leave the same rows; `python -m tests.crash` walks
both, and `make test-postgres` walks these on PostgreSQL.
"""

import json
from collections.abc import Callable

import pytest

from tests.crash.kills import When
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import OUTBOX


@pytest.mark.parametrize("scenario", OUTBOX)
def test_death_after_any_command_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    tally = lab.walk(scenario, When.AFTER)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 0, "nothing was killed: the drivers' commands were not seen"
