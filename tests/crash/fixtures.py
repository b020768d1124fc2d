"""One lab a test process, whichever tiers use it, and what real workers of a test are told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.lab import Lab, open_lab
from tests.crash.worker import Settings
from tests.kit import servers


@pytest.fixture(scope="session")
def lab(mongo_url: str) -> Iterator[Lab]:
    """The lab of this test process."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open_lab(servers.run_dir() / f"crash-{worker}", mongo_url) as lab:
        yield lab


@pytest.fixture
def settings(
    mongo_url: str, redis_url: str, mongo_db_name: str, key_prefix: str, tmp_path: Path
) -> Settings:
    """What the workers of this test are told; the lease is short, so that it runs out in a test."""
    return Settings(
        mongo_url=mongo_url,
        redis_url=redis_url,
        database=mongo_db_name,
        key_prefix=key_prefix,
        folder=str(tmp_path),
        lease=2,
    )
