"""The one line of figures at the end of the matrix."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.crash.lab import Tally

#: Under this name a test records its row.
PROPERTY = "crash matrix"


def row(scenario: str, tally: Tally) -> dict[str, Any]:
    """Return what one walk adds to the line; it travels as JSON."""
    return {
        "scenario": scenario,
        "boundaries": tally.boundaries,
        "kills": tally.kills,
        "violations": len(tally.violations),
    }


def last_line(rows: Iterable[Mapping[str, Any]]) -> str:
    """Sum up rows; a boundary counts once, however often and in whatever way it was killed."""
    boundaries: dict[str, int] = {}
    kills = violations = 0
    for each in rows:
        name = each["scenario"]
        boundaries[name] = max(boundaries.get(name, 0), each["boundaries"])
        kills += each["kills"]
        violations += each["violations"]
    return (
        f"crash matrix: {sum(boundaries.values())} boundaries, {kills} kills,"
        f" {violations} violations"
    )


def summarise(terminal: pytest.TerminalReporter) -> None:
    """Write the line for what this run's tests recorded; nothing if none of them did."""
    rows = [
        json.loads(str(value))
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if rows:
        terminal.write_line(last_line(rows))
