"""Who is woken, how often, and who is not kept waiting."""

import pytest

from kernel import InstanceStatus
from tests.kit.waiting import eventually
from tests.trust.business import plans
from tests.trust.stage import Stage, moved_at_most_once

pytestmark = pytest.mark.timeout(240)


def test_a_busy_child_hoards_no_wakeup_beside_an_idle_one(stage: Stage) -> None:
    stage.worker(concurrency=2)
    long = stage.start(plans.GATED, "long")
    busy = stage.entered(long)["pid"]
    for number in range(10):
        workflow_id = stage.start(plans.CHAIN, f"short:{number}")
        assert stage.entered(workflow_id)["pid"] != busy
        stage.ended(workflow_id)
    assert not stage.kernel.get(long).status.is_terminal, "all of them were done beside it"
    stage.open_gate()
    stage.ended(long)
    moved_at_most_once(stage)


def test_a_long_step_delays_neither_timers_nor_another_queue(stage: Stage) -> None:
    stage.worker(plans.SLOW_QUEUE, name="slow")
    stage.worker(plans.QUEUE, name="quick")
    stage.control()
    long = stage.start(plans.SLOW, "long")
    stage.entered(long)
    nap = stage.start(plans.SLEEPY, "nap", {"seconds": 1.0})
    first = stage.entered(nap)
    second = stage.entered(nap, times=2)
    assert second["at"] - first["at"] >= 1.0
    chain = stage.start(plans.CHAIN, "chain")
    assert stage.ended(chain).status is InstanceStatus.COMPLETED
    assert not stage.kernel.get(long).status.is_terminal


def test_one_child_serves_two_queues_by_turns(stage: Stage) -> None:
    """A saturated queue gives the slot back after a while, whatever still waits in it."""
    backlog = [stage.start(plans.CHAIN, f"many:{number}", {"seconds": 0.1}) for number in range(40)]
    stage.open_gate()
    stage.worker(plans.QUEUE, plans.SLOW_QUEUE)
    stage.entered(backlog[0])
    other = stage.start(plans.SLOW, "other")
    stage.entered(other, within=9)
    assert any(not stage.kernel.get(each).status.is_terminal for each in backlog)


def test_without_beat_the_main_process_keeps_time(stage: Stage) -> None:
    stage.worker()
    nap = stage.start(plans.SLEEPY, "nap", {"seconds": 1.0})
    assert stage.ended(nap, within=20).status is InstanceStatus.COMPLETED
    with stage.without_bell():
        lost = stage.start(plans.CHAIN, "lost")
    assert stage.ended(lost, within=20).status is InstanceStatus.COMPLETED


def test_two_beats_and_ticks_at_once_are_harmless(stage: Stage) -> None:
    stage.worker(concurrency=2)
    stage.control("first")
    stage.control("second")
    naps = [stage.start(plans.SLEEPY, f"nap:{number}", {"seconds": 0.5}) for number in range(20)]
    for workflow_id in naps:
        assert stage.ended(workflow_id).status is InstanceStatus.COMPLETED
    # A step that slept is entered once before and once after, never more.
    assert all(len(stage.lines(workflow_id, "enter")) == 2 for workflow_id in naps)


def test_a_worker_says_what_it_serves_and_takes_its_leave(stage: Stage) -> None:
    worker = stage.worker(plans.QUEUE, "unknown")
    (beat,) = eventually(stage.kernel.workers, 15, "no worker was heard of")
    assert beat.queues == (plans.QUEUE,)
    assert plans.CHAIN.fingerprint in {served.fingerprint for served in beat.served}
    assert not beat.stopping
    worker.process.terminate()
    assert worker.wait(40) == 0
    assert stage.kernel.workers() == []
