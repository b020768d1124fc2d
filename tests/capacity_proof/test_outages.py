"""Servers away under load: without Redis the limits hold, without MongoDB nobody starts."""

import os
import signal
from collections.abc import Callable

import pytest

from config.embedded import MongoServer, RedisServer
from tests.capacity_proof.calls import lost, most_in_flight
from tests.capacity_proof.deployment import Deployment, with_workers
from tests.capacity_proof.sizes import OUTAGE
from tests.hints.own_server import admin
from tests.kit.waiting import eventually, never

pytestmark = pytest.mark.timeout(600)

LIMIT = 3
#: Short calls that are being made when a server goes.
CROWD = 100


def test_limits_and_lines_survive_a_flush_and_hold_without_redis(
    deploy: Callable[..., Deployment], own_redis: RedisServer
) -> None:
    deployment = deploy(BATON_REDIS_URL=own_redis.url, BATON_BROKER_URL=own_redis.url)
    with_workers(deployment, workers=1, children=5)
    group = deployment.limited("flush", max_concurrency=LIMIT)
    names = deployment.crowd(group, CROWD, ms=30)
    deployment.began(group, 5)
    with admin(own_redis) as redis:
        redis.flushall()
    deployment.all_ended(names)
    calls = deployment.provider.calls(group)
    assert len(calls) == len(names)
    assert most_in_flight(calls) <= LIMIT
    group = deployment.limited("away", max_concurrency=LIMIT)
    own_redis.kill()
    names = deployment.crowd(group, 10, ms=30)
    deployment.all_ended(names)
    calls = deployment.provider.calls(group)
    assert len(calls) == len(names)
    assert most_in_flight(calls) <= LIMIT
    own_redis.start()


def test_nobody_starts_while_mongodb_cannot_be_asked(
    deploy: Callable[..., Deployment], own_mongo: MongoServer
) -> None:
    deployment = deploy(BATON_MONGO_URL=own_mongo.url)
    with_workers(deployment, workers=1, children=5)
    group = deployment.limited("away", max_concurrency=LIMIT)
    names = deployment.crowd(group, 8, gate=group)
    deployment.began(group, LIMIT)
    deployment.waiting(group, len(names) - LIMIT)
    crowd_group = deployment.limited("crowd", max_concurrency=LIMIT)
    crowd = deployment.crowd(crowd_group, CROWD, ms=30)
    deployment.began(crowd_group, 5)
    os.kill(own_mongo.pid, signal.SIGKILL)
    # The holders come home and cannot give back what nobody can be told of.
    deployment.provider.open(group)
    eventually(
        lambda: all(call.ended for call in deployment.provider.calls(group)), 30, "calls go on"
    )
    never(lambda: len(deployment.provider.calls(group)) > LIMIT, OUTAGE, "started unseen")
    own_mongo.kill()
    own_mongo.start()
    deployment.all_ended([*names, *crowd], within=90)
    calls = deployment.provider.calls(crowd_group)
    assert most_in_flight(calls, apart=lost(calls)) <= LIMIT
    assert {call.workflow for call in calls} == set(crowd)
    calls = deployment.provider.calls(group)
    assert most_in_flight(calls, apart=lost(calls)) <= LIMIT
    assert {call.workflow for call in calls} == set(names)
    eventually(lambda: deployment.status(group).used == 0, 10, "permits are still held")
