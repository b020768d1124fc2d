"""Outages in less time: what the driver waits for, where a test is about what comes after it.

Guarantees that only waiting is shortened, in this process, for one test. Leaves the product's own
limits to the tests that are about them.
"""

import pytest


@pytest.fixture
def eager_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients made from here on look for a lost server at once, not twice a second."""
    monkeypatch.setattr("pymongo.common.MIN_HEARTBEAT_INTERVAL", 0.02)


@pytest.fixture
def impatient_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kernels made from here on give MongoDB up after a fifth of a second, not three."""
    monkeypatch.setattr("kernel.store.connection._SELECTION_TIMEOUT_MS", 200)
