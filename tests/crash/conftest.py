"""One lab a test process, and the matrix's sum at the end of the run."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.crash.lab import Lab, open_lab
from tests.crash.report import PROPERTY, last_line
from tests.kit import servers


@pytest.fixture(scope="session")
def lab(mongo_url: str) -> Iterator[Lab]:
    """The lab of this test process."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open_lab(servers.run_dir() / f"crash-{worker}", mongo_url) as lab:
        yield lab


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the whole matrix killed, whichever processes did it."""
    rows = [
        json.loads(str(value))
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if rows:
        terminalreporter.write_line(last_line(rows))
