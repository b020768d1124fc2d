"""Hints on the run's Redis, with a clock offset the test may move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis

from kernel.hints import RedisHints


@dataclass(slots=True)
class Offset:
    """The clock offset in ms that the hints ask for at every call."""

    ms: int = 0

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def offset() -> Offset:
    return Offset()


@pytest.fixture
def hints(redis_url: str, key_prefix: str, offset: Offset) -> Iterator[RedisHints]:
    hints = RedisHints(redis_url, key_prefix=key_prefix, clock_offset_ms=offset)
    yield hints
    hints.close()


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_url, decode_responses=True, protocol=2)
    yield client
    client.close()
