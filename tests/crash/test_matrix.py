"""Every scenario, killed between every two commands, ends right.

What a death before a command leaves is what one after the command before it leaves, so one side
is enough here; `make crash` kills on both. Odd boundaries end by exit, even ones by SIGKILL;
`make crash ARGS=--every-way` kills each on both sides in both ways.
"""

import json
from collections.abc import Callable

import pytest

from tests.crash.kills import When
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import MATRIX


@pytest.mark.parametrize("scenario", MATRIX)
def test_death_between_any_two_commands_ends_right(
    lab: Lab, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    tally = lab.walk(scenario, When.BEFORE)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 0, "nothing was killed: the drivers' commands were not seen"
