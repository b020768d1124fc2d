"""A deploy loses nothing, repeats nothing, and keeps nobody waiting."""

import os
import signal
import time

import pytest

from kernel import InstanceStatus
from tests.trust.business import plans
from tests.trust.stage import Stage, moved_at_most_once

#: Rolling restarts; a soak asks for more.
RESTARTS = int(os.environ.get("BATON_SOAK_RESTARTS", "1"))

pytestmark = pytest.mark.timeout(300 + 240 * RESTARTS)


def test_a_stopped_worker_finishes_its_step_and_hands_back(stage: Stage) -> None:
    first = stage.worker(name="first")
    stage.control()
    workflow_id = stage.start(plans.GATED, "deploy:1")
    stage.entered(workflow_id)
    stage.worker(name="second")
    first.send(signal.SIGTERM)
    first.wait_for_line("shutdown", timeout=20)
    stage.open_gate()
    assert first.wait(40) == 0
    ended = stage.ended(workflow_id)
    assert ended.status is InstanceStatus.COMPLETED
    (left,), (went_on,) = (
        stage.lines(workflow_id, "leave", "gate"),
        stage.lines(workflow_id, "enter", "after"),
    )
    assert went_on["at"] - left["at"] <= 2.0
    assert went_on["pid"] != left["pid"], "the stopped worker began another step"
    assert [step.recoveries for step in ended.steps.values()] == [0, 0]
    moved_at_most_once(stage)


def test_a_step_that_polling_began_is_waited_for_too(stage: Stage) -> None:
    """No message says that this child is busy, so only its slot keeps it from leaving early."""
    with stage.without_bell():
        workflow_id = stage.start(plans.GATED, "polled:1")
    worker = stage.worker(name="alone")
    stage.entered(workflow_id)
    worker.send(signal.SIGTERM)
    worker.wait_for_line("shutdown", timeout=20)
    stage.open_gate()
    assert worker.wait(40) == 0
    assert "1 claims ran by polling" in worker.output
    kept = stage.kernel.get(workflow_id)
    assert kept.steps["gate"].status == "completed"
    assert kept.claim_token is None
    moved_at_most_once(stage)


def test_rolling_restarts_under_load_lose_and_repeat_nothing(stage: Stage) -> None:
    workers = {name: stage.worker(name=name) for name in ("left", "right")}
    stage.control()
    started: list[str] = []
    for number in range(RESTARTS):
        for name, worker in workers.items():
            for _ in range(10):
                key = f"roll:{len(started)}"
                started.append(stage.start(plans.CHAIN, key, {"seconds": 0.1}))
            worker.send(signal.SIGTERM)
            workers[name] = stage.begin_worker(name=f"{name}{number}")
            assert worker.wait(60) == 0
            workers[name].wait_for_line(f"{name}{number}@test ready", timeout=90)
    deadline = time.monotonic() + 60 + 5 * RESTARTS
    for workflow_id in started:
        ended = stage.ended(workflow_id, within=max(1.0, deadline - time.monotonic()))
        assert ended.status is InstanceStatus.COMPLETED
        assert all(step.recoveries == 0 for step in ended.steps.values())
    moved_at_most_once(stage)
    assert len(stage.lines(what="leave")) == 3 * len(started)
