"""A kernel of the test's own behind `jobs.runtime`, and jobs in the states a test starts from."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from pytest_django import Settings

from jobs.dispatch import relay
from jobs.runtime import register_plans, using_kernel
from kernel import Kernel, KernelConfig


@contextmanager
def connections_of_its_own() -> Iterator[None]:
    """Leave no database connection in an activity's thread, so that the test database can go."""
    try:
        yield
    finally:
        connections.close_all()


@pytest.fixture
def kernel(mongo_url: str, mongo_db_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database; the relay's breaker starts closed."""
    # What a test says is away stays away until it says otherwise, however slow the machine is.
    monkeypatch.setattr(relay.breaker, "_pause_seconds", 3600.0)
    kernel = Kernel.connect(
        KernelConfig(
            mongo_url=mongo_url,
            database=mongo_db_name,
            lease=5,
            around_activity=connections_of_its_own,
        )
    )
    kernel.ensure_schema()
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel
    kernel.close()


@pytest.fixture
def dead_kernel(impatient_store: None) -> Iterator[Kernel]:
    """A kernel whose MongoDB does not answer."""
    kernel = Kernel.connect(
        KernelConfig(
            mongo_url="mongodb://127.0.0.1:1/?replicaSet=rs0",
            database="nowhere",
        )
    )
    register_plans(kernel)
    relay.breaker.succeeded()
    yield kernel
    relay.breaker.succeeded()
    kernel.close()


class DatabaseTime:
    """The database's clock as the dispatch protocol sees it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def advance(self, seconds: float) -> None:
        """Let time pass for every later statement."""
        self._settings.BATON_CLOCK_OFFSET_MS += int(seconds * 1000)


@pytest.fixture
def database_time(settings: Settings) -> DatabaseTime:
    """Moves the clock of the dispatch protocol; the change ends with the test."""
    return DatabaseTime(settings)
