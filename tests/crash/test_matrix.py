"""Every scenario, killed before and after every command, ends right.

Odd boundaries end by exit before and by SIGKILL after their command, even ones the other way round;
`python -m tests.crash --every-way` kills each in all four ways.
"""

import json
from collections.abc import Callable

import pytest

from tests.crash.kills import When
from tests.crash.lab import Lab
from tests.crash.report import PROPERTY, row
from tests.crash.scenarios import MATRIX


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("scenario", MATRIX)
def test_death_at_any_boundary_ends_right(
    lab: Lab, scenario: str, when: When, record_property: Callable[[str, object], None]
) -> None:
    tally = lab.walk(scenario, when)
    record_property(PROPERTY, json.dumps(row(scenario, tally)))
    assert tally.violations == []
    assert tally.boundaries > 0, "nothing was killed: the drivers' commands were not seen"
