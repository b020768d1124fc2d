"""A kernel of the test's own behind `jobs.runtime`, and jobs in the states a test starts from."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from jobs.dispatch import relay
from jobs.runtime import fresh_connections, register_plans, using_kernel
from kernel import Kernel, KernelConfig


@pytest.fixture
def kernel(mongo_url: str, mongo_db_name: str) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database; the relay's breaker starts closed."""
    kernel = Kernel.connect(
        KernelConfig(
            mongo_url=mongo_url,
            database=mongo_db_name,
            lease=5,
            around_activity=fresh_connections,
        )
    )
    kernel.ensure_schema()
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel
    kernel.close()


@pytest.fixture
def dead_kernel() -> Iterator[Kernel]:
    """A kernel whose MongoDB does not answer."""
    kernel = Kernel.connect(
        KernelConfig(
            mongo_url="mongodb://127.0.0.1:1/?replicaSet=rs0&serverSelectionTimeoutMS=200",
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
