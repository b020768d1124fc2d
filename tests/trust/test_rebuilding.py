"""After a flush every candidate stands in its own lane again, and at once."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from config.embedded import RedisServer
from kernel import Kernel
from kernel.errors import HintsUnavailable
from tests.hints.own_server import admin
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually
from tests.trust.test_bell import cloned

#: A multiple of four, one quarter for each lane; a soak asks for more.
CANDIDATES = int(os.environ.get("BATON_SOAK_CANDIDATES", "2000"))
#: Promised for 100,000 candidates, from the flush to the last lane.
REBUILD_SECONDS = 35

#: Those of each lane, and one more of P1.
IN_LANES = [CANDIDATES // 4 + (lane == 1) for lane in range(4)]

pytestmark = pytest.mark.timeout(600 + CANDIDATES / 50)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def crowded(
    make_kernel: MakeKernel,
    own_redis: RedisServer,
    mongo_client: MongoClient[dict[str, Any]],
    mongo_db_name: str,
) -> Kernel:
    """A kernel with many due instances, as many of each priority, and one more of P1."""
    crowd = definition("rebuild.crowd", {"only": lambda _: None})
    kernel = make_kernel(crowd, redis_url=own_redis.url)
    first = start(kernel, crowd)
    cloned(kernel, mongo_client[mongo_db_name], first, CANDIDATES)
    return kernel


def depths(kernel: Kernel) -> list[int]:
    return [lane.ready for _, lane in sorted(kernel.hints.hints.depth(QUEUE).items())]


def test_what_an_empty_redis_lacks_is_built_before_the_first_tick_which_has_nothing_to_warn_of(
    crowded: Kernel, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert crowded.build_hints()
    assert depths(crowded) == IN_LANES
    with admin(own_redis) as client:
        client.delete(*client.keys("*:ready:*"))
    assert crowded.build_hints()
    assert depths(crowded) == [0, 0, 0, 0], "it is known to have been built"
    crowded.tick()
    assert not caplog.records
    own_redis.kill()
    assert not crowded.build_hints()


def test_a_flush_costs_one_tick(crowded: Kernel, own_redis: RedisServer) -> None:
    crowded.tick()
    assert depths(crowded) == IN_LANES
    with admin(own_redis) as client:
        client.flushall()
    began = time.monotonic()
    crowded.tick()
    seconds = time.monotonic() - began
    assert depths(crowded) == IN_LANES
    assert seconds < REBUILD_SECONDS, seconds
    assert crowded.hints.hints.marker_present()


def test_a_cursor_from_before_the_flush_hides_nobody(
    crowded: Kernel, own_redis: RedisServer, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    database = mongo_client[crowded.config.database]
    last = database.workflow_instances.find_one({}, sort=[("workflow_id", -1)])
    assert last is not None
    cursor = {"time": last["claimable_time"], "workflow_id": last["workflow_id"]}
    database.workflow_leases.update_one(
        {"_id": "reconcile"}, {"$set": {"cursors.lost_candidates": cursor}}, upsert=True
    )
    crowded.tick()
    assert depths(crowded) == IN_LANES


def test_the_mark_is_not_set_while_somebody_else_holds_the_duty(
    crowded: Kernel, make_kernel: MakeKernel, own_redis: RedisServer
) -> None:
    """He may have begun before the flush, so that his part of it is lost again."""
    other = crowded._parts.leases
    assert other.acquire("reconcile", "somebody:1:1", lease_ms=60_000)
    crowded.tick()
    assert not crowded.hints.hints.marker_present()
    other.release("reconcile", "somebody:1:1")
    crowded.tick()
    assert crowded.hints.hints.marker_present()
    assert depths(crowded) == IN_LANES
    assert crowded.reconcile().found["lost_candidates"] == 0


def test_a_redis_that_answers_again_is_filled_again(
    crowded: Kernel, own_redis: RedisServer
) -> None:
    crowded.tick()
    own_redis.kill()
    crowded.tick()
    own_redis.start()

    def is_full() -> bool:
        crowded.tick()
        try:
            return depths(crowded) == IN_LANES
        except HintsUnavailable:
            return False

    eventually(is_full, 20, "the lanes stayed empty")
