"""Servers of a test's own, which it may hurt: a mongod and a redis-server in its folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import MongoServer, RedisServer
from tests.kit.servers import mongod_of_one_test


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A redis-server that nobody else uses."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def own_mongo(tmp_path: Path) -> Iterator[MongoServer]:
    """A mongod that nobody else uses; it ends by a kill."""
    with mongod_of_one_test(tmp_path / "mongo") as server:
        yield server
