"""The servers a run measures, and the environment its processes get.

Guarantees a database and key prefix of the run's own, dropped at the end; embedded servers are
started in a temporary folder and stopped. `BATON_MONGO_URL` and `BATON_REDIS_URL`, both set, name
servers to measure instead.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from pymongo import MongoClient

from config.embedded import MongoServer, RedisServer
from kernel import Kernel, KernelConfig
from kernel.keeper import ClaimSlots

QUEUE = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a figure is measured; handed to child processes as environment."""

    mongo_url: str
    redis_url: str
    data_dir: Path

    def fresh(self, *, lease: float = 15) -> dict[str, str]:
        """Return an environment with a database and key prefix nobody used before."""
        name = f"bench_{uuid.uuid4().hex[:10]}"
        return {
            "BATON_MONGO_URL": self.mongo_url,
            "BATON_REDIS_URL": self.redis_url,
            "BATON_BROKER_URL": self.redis_url,
            "BATON_DATABASE": name,
            "BATON_KEY_PREFIX": name,
            "BATON_DATA_DIR": str(self.data_dir),
            "BATON_LEASE_SECONDS": str(lease),
            "BATON_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "bench.settings",
        }

    def clear(self, environment: Mapping[str, str]) -> None:
        """Drop what an environment's processes wrote. On repeat: nothing."""
        with mongo(environment) as client:
            client.drop_database(environment["BATON_DATABASE"])
        with redis.Redis.from_url(self.redis_url) as hints:
            keys = list(hints.scan_iter(match=f"*{environment['BATON_KEY_PREFIX']}*", count=5000))
            for start in range(0, len(keys), 1000):
                hints.delete(*keys[start : start + 1000])


@contextmanager
def running_site() -> Iterator[Site]:
    """Start the servers for the length of a run, or use those the environment names."""
    given = os.environ.get("BATON_MONGO_URL"), os.environ.get("BATON_REDIS_URL")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="baton-bench-")))
        if given[0] and given[1]:
            mongo_url, redis_url = given[0], given[1]
        else:
            mongo_url = stack.enter_context(MongoServer(folder / "mongo")).url
            redis_url = stack.enter_context(RedisServer(folder / "redis")).url
        data_dir = folder / "data"
        data_dir.mkdir()
        yield Site(mongo_url=mongo_url, redis_url=redis_url, data_dir=data_dir)


@contextmanager
def fresh_database(site: Site, *, lease: float = 15) -> Iterator[dict[str, str]]:
    """Give an environment of one measurement's own and drop its data afterwards."""
    environment = site.fresh(lease=lease)
    try:
        yield environment
    finally:
        site.clear(environment)


def mongo(environment: Mapping[str, str]) -> MongoClient[dict[str, Any]]:
    """Return a client that writes as durably as the kernel: majority and journal."""
    return MongoClient(environment["BATON_MONGO_URL"], w="majority", journal=True)


def connect(environment: Mapping[str, str], *, slots: int = 1, kept: bool = False) -> Kernel:
    """Return a kernel on an environment; `kept` as a pool child is, for half a lease."""
    keeper = ClaimSlots(1)
    keeper.write_beat(time.monotonic())
    return Kernel.connect(
        KernelConfig(
            mongo_url=environment["BATON_MONGO_URL"],
            redis_url=environment["BATON_REDIS_URL"],
            database=environment["BATON_DATABASE"],
            key_prefix=environment["BATON_KEY_PREFIX"],
            lease=float(environment["BATON_LEASE_SECONDS"]),
            slots_per_child=slots,
        ),
        child=(keeper, 0) if kept else None,
    )


def await_item(client: redis.Redis, key: str, *, seconds: float = 60) -> bytes:
    """Take the next item of a Redis list.

    Raises:
        RuntimeError: none came within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # Short enough for the client's own read timeout.
        reply: Any = client.blpop([key], timeout=1)
        if reply is not None:
            return bytes(reply[1])
    raise RuntimeError(f"nothing arrived in {key} within {seconds:g} s")
