"""The fan-out pages through many subscribers, and a death in the middle costs nothing."""

from typing import Any

import pytest
from pymongo import MongoClient

from jobs.activities import fanout
from jobs.services import live
from kernel import Kernel
from kernel.testing import run_until_idle
from tests.api.serving import database_url
from tests.kit.processes import python
from tests.kit.waiting import eventually
from tests.live.turns import (
    DISTRIBUTION,
    MEDIA,
    RECORDING,
    announce,
    fan_out_of,
    first_step,
    instance_of,
    pass_time,
    subscribe,
)

pytestmark = pytest.mark.django_db(transaction=True)

#: Three pages: the kill comes while the first or second is rung.
SUBSCRIBERS = 3 * fanout.PAGE
#: Of the tests' kernel, seconds.
LEASE_SECONDS = 5


@pytest.mark.timeout(240)
def test_a_kill_in_the_middle_of_a_page_wakes_everybody_exactly_once(
    serving: Kernel,
    child_env: dict[str, str],
    mongo_client: MongoClient[dict[str, Any]],
    mongo_db_name: str,
) -> None:
    signals = mongo_client[mongo_db_name]["workflow_signals"]
    event = announce()
    jobs = [subscribe(event) for _ in range(SUBSCRIBERS)]
    run_until_idle(serving, MEDIA)
    live.end("acme", event.pk, recording_url=RECORDING)
    to_subscribers = {"signal_type": live.READY}
    env = {
        **child_env,
        "BATON_REDIS_URL": "",
        "BATON_DATABASE_URL": database_url(),
        "BATON_LEASE_SECONDS": str(LEASE_SECONDS),
    }
    with python("-m", "tests.speech.worker", "distribution", env=env) as worker:
        eventually(lambda: signals.count_documents(to_subscribers) >= 1, timeout=30, interval=0.001)
        worker.kill_group()
    rung = signals.count_documents(to_subscribers)
    assert 0 < rung < SUBSCRIBERS, "it was killed too late to show anything"
    assert fan_out_of(serving, event).status == "running"

    pass_time(serving, LEASE_SECONDS + 1, DISTRIBUTION)
    done = fan_out_of(serving, event)
    assert done.output["notify"] == {"rung": SUBSCRIBERS}
    assert done.steps["notify"].recoveries == 0
    assert signals.count_documents(to_subscribers) == SUBSCRIBERS
    assert signals.count_documents({**to_subscribers, "status": "matched"}) == SUBSCRIBERS
    for job in jobs:
        state = first_step(serving, job)
        assert (state.status, state.woken_by) == ("pending", (f"{event.pk}:{job.pk}:1",))
        assert instance_of(serving, job).waits == ()


def test_the_checkpoint_is_a_cursor_and_every_page_lets_others_go_first(serving: Kernel) -> None:
    event = announce()
    for _ in range(fanout.PAGE + 1):
        subscribe(event)
    live.end("acme", event.pk, recording_url=RECORDING)
    run_until_idle(serving, DISTRIBUTION)
    done = fan_out_of(serving, event)
    assert done.output["notify"] == {"rung": fanout.PAGE + 1}
    outcomes = [attempt.outcome for attempt in done.steps["notify"].attempts]
    assert outcomes == ["yielded", "yielded", "completed"]
    assert done.steps["notify"].attempt == 1


def test_an_event_nobody_waits_for_fans_out_to_nobody(serving: Kernel) -> None:
    event = announce()
    live.end("acme", event.pk, recording_url=RECORDING)
    run_until_idle(serving, DISTRIBUTION)
    assert fan_out_of(serving, event).output["notify"] == {"rung": 0}
