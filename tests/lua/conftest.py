"""A client, the scripts, and one queue's lanes on the run's Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from kernel.hints.keys import Keys, QueueKeys
from kernel.hints.scripts import Scripts
from tests.lua.lanes import Lanes


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_url, decode_responses=True, protocol=2)
    yield client
    client.close()


@pytest.fixture
def scripts(client: redis.Redis) -> Scripts:
    return Scripts(client)


@pytest.fixture
def keys(key_prefix: str) -> QueueKeys:
    return Keys(key_prefix).of("content")


@pytest.fixture
def lanes(client: redis.Redis, scripts: Scripts, keys: QueueKeys) -> Lanes:
    return Lanes(client=client, scripts=scripts, keys=keys)
