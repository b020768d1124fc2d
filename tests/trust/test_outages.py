"""Redis or MongoDB away under load: nothing is lost, nothing is repeated, nobody is restarted."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from config.embedded import MongoServer, RedisServer
from kernel import InstanceStatus
from kernel.errors import StoreUnavailable
from tests.hints.own_server import hung
from tests.kit.waiting import eventually, never
from tests.trust.business import plans
from tests.trust.stage import LEASE_SECONDS, Stage, moved_at_most_once

#: Seconds of an outage; a soak asks for more.
OUTAGE = float(os.environ.get("BATON_SOAK_OUTAGE", "3"))

pytestmark = pytest.mark.timeout(600 + 2 * OUTAGE)


def load(stage: Stage, name: str) -> list[str]:
    """Register work of every kind that waits for nobody."""
    chains = [
        stage.start(plans.CHAIN, f"{name}:chain:{number}", {"seconds": 0.05})
        for number in range(10)
    ]
    naps = [
        stage.start(plans.SLEEPY, f"{name}:nap:{number}", {"seconds": 1.0}) for number in range(3)
    ]
    return chains + naps


def all_completed(stage: Stage, workflow_ids: list[str], within: float) -> None:
    deadline = time.monotonic() + within
    for workflow_id in workflow_ids:
        ended = stage.ended(workflow_id, within=max(0.1, deadline - time.monotonic()))
        assert ended.status is InstanceStatus.COMPLETED


def comes_back(stage: Stage) -> None:
    """Check that messages, not polling, start work again: within a fraction of its interval."""
    probes = iter(range(100))

    def is_quick() -> bool:
        workflow_id = stage.start(plans.CHAIN, f"probe:{next(probes)}")
        started = time.time()
        return bool(stage.entered(workflow_id)["at"] - started < 0.5)

    eventually(is_quick, 40, "wakeups never came back")


@pytest.mark.parametrize("how", ["killed", "hung"])
def test_work_goes_on_without_redis_and_comes_back_to_it(
    build_stage: Callable[..., Stage], own_redis: RedisServer, how: str
) -> None:
    stage = build_stage(BATON_REDIS_URL=own_redis.url, BATON_BROKER_URL=own_redis.url)
    worker = stage.worker(concurrency=2)
    control = stage.control()
    before = load(stage, "before")
    if how == "killed":
        own_redis.kill()
        _meanwhile(stage)
        own_redis.start()
    else:
        with hung(own_redis):
            _meanwhile(stage)
    all_completed(stage, before, within=30)
    comes_back(stage)
    moved_at_most_once(stage)
    assert worker.process.poll() is None
    assert control.process.poll() is None


def _meanwhile(stage: Stage) -> None:
    """Accept work and see it end while Redis is away, sleeps included."""
    away_since = time.monotonic()
    accepted = load(stage, "during")
    all_completed(stage, accepted, within=45)
    while (left := OUTAGE - (time.monotonic() - away_since)) > 0:
        more = stage.start(plans.CHAIN, f"during:{left}", {"seconds": 0.05})
        all_completed(stage, [more], within=20)


def test_a_holder_that_outlives_mongodb_keeps_its_claim(
    build_stage: Callable[..., Stage], own_mongo: MongoServer
) -> None:
    stage = build_stage(BATON_MONGO_URL=own_mongo.url)
    stage.worker(name="holder", concurrency=1)
    stage.control()
    held = stage.start(plans.GATED, "held")
    holder = stage.entered(held)["pid"]
    stage.worker(name="rival", concurrency=1)
    claim = stage.kernel.get(held).claim_token
    os.kill(own_mongo.pid, signal.SIGKILL)
    waiting_since = time.monotonic()

    def is_away() -> bool:
        try:
            stage.kernel.get(held)
        except StoreUnavailable:
            return time.monotonic() - waiting_since > max(OUTAGE, LEASE_SECONDS + 1)
        return False

    eventually(is_away, OUTAGE + 30, "MongoDB never was away for longer than the lease")
    own_mongo.kill()
    own_mongo.start()
    eventually(lambda: _answers(stage, held), 30, "MongoDB never came back")
    never(lambda: _taker(stage, held, claim), LEASE_SECONDS, "taken from it")
    stage.open_gate()
    ended = stage.ended(held)
    assert ended.status is InstanceStatus.COMPLETED
    assert [line["pid"] for line in stage.lines(held, "enter", "gate")] == [holder]
    later = stage.start(plans.CHAIN, "later")
    assert stage.ended(later).status is InstanceStatus.COMPLETED
    moved_at_most_once(stage)


def _taker(stage: Stage, workflow_id: str, claim: str | None) -> str | None:
    instance = stage.kernel.get(workflow_id)
    return None if instance.claim_token == claim else f"taken by {instance.claim_owner}"


def _answers(stage: Stage, workflow_id: str) -> bool:
    try:
        stage.kernel.get(workflow_id)
    except StoreUnavailable:
        return False
    return True
