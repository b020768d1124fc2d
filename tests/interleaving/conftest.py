"""One stage a test module; the driver is patched while it is open."""

from collections.abc import Iterator

import pytest

from tests.interleaving.stage import Stage


@pytest.fixture(scope="module")
def stage(mongo_url: str) -> Iterator[Stage]:
    """Processes with one claim each."""
    with Stage(mongo_url).opened() as stage:
        yield stage


@pytest.fixture(scope="module")
def wide_stage(mongo_url: str) -> Iterator[Stage]:
    """Processes that run four claims side by side, with grouped commits."""
    with Stage(mongo_url, slots=4).opened() as stage:
        yield stage
