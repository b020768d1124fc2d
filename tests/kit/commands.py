"""What one test's database is asked, as the driver of this process tells it.

Guarantees that only commands of the test's own database are kept. Clients made before this module
was imported tell nothing: the driver takes a listener only for clients to come.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import monitoring


class CommandLog(monitoring.CommandListener):
    """The commands of one database, in the order they were sent."""

    def __init__(self) -> None:
        self.database = ""
        self.commands: list[dict[str, Any]] = []

    @property
    def names(self) -> list[str]:
        """The name of each command."""
        return [next(iter(command)) for command in self.commands]

    def on(self, collection: str) -> list[dict[str, Any]]:
        """Return the commands on one collection."""
        return [each for each in self.commands if each[next(iter(each))] == collection]

    def clear(self) -> None:
        """Forget what has been asked so far."""
        self.commands.clear()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Keep the command, whatever becomes of it."""
        if event.database_name == self.database:
            self.commands.append(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Only what was asked counts."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Only what was asked counts."""


_LOG = CommandLog()
monitoring.register(_LOG)


@pytest.fixture
def commands(mongo_db_name: str) -> Iterator[CommandLog]:
    """The commands of this test's database, from here on."""
    _LOG.database = mongo_db_name
    yield _LOG
    _LOG.database = ""
    _LOG.clear()
