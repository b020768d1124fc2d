"""Holders that die, and holders that were only thought to be dead."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.capacity_proof.business import plans
from tests.capacity_proof.calls import lost, most_in_flight
from tests.capacity_proof.deployment import Deployment
from tests.kit.waiting import eventually
from tests.trust.stage import LEASE_SECONDS

pytestmark = pytest.mark.timeout(300)

#: What a takeover may take beyond the lease on a loaded machine, seconds; bench has the figures.
SLACK = 20
#: Short calls that go on beside what happens to one holder.
CROWD = 100
CROWD_MS = 20


@contextmanager
def held_by_a_victim(deployment: Deployment, resource: str, gate: str) -> Iterator[tuple[str, int]]:
    """Let a worker of its own take the only permit; give its workflow and its process group."""
    with deployment.stage.worker(plans.ALONE_QUEUE, name=f"victim-{gate}") as victim:
        held = deployment.start(resource, plan=plans.ALONE, gate=gate)
        deployment.began(resource, 1)
        yield held, victim.pid


def test_the_permit_of_a_killed_worker_is_back_within_its_lease(shared: Deployment) -> None:
    """A crowd goes on beside it with one permit less meanwhile, and never with one too many."""
    resource = shared.limited("killed", max_concurrency=2)
    with held_by_a_victim(shared, resource, "killed") as (held, victim):
        crowd = shared.crowd(resource, CROWD, ms=CROWD_MS)
        shared.began(resource, 10)
        holders = [holder.workflow_id for holder in shared.status(resource).holders]
        os.killpg(victim, signal.SIGKILL)
        # Nobody gave it back; those that wait are asked again when the lease is over.
        eventually(lambda: held not in _holders(shared, resource), LEASE_SECONDS + SLACK, "kept")
        crowd += shared.crowd(resource, 10, ms=CROWD_MS)
        shared.all_ended(crowd)
    calls = shared.provider.calls(resource)
    assert held in holders
    assert calls[0].workflow == held
    assert calls[0].dropped
    assert most_in_flight(calls) == 2
    assert len(calls) == 1 + len(crowd)
    eventually(lambda: shared.status(resource).used == 0, 10, "a permit is still held")
    assert shared.stage.kernel.supersede(held, reason="nobody of this test serves it any more")


def test_a_permit_of_a_killed_child_is_handed_on(shared: Deployment) -> None:
    resource = shared.limited("child", max_concurrency=1)
    held = shared.start(resource, gate="child")
    shared.began(resource, 1)
    pid = _child_of(shared, held)
    waiter = shared.start(resource, gate="child")
    shared.waiting(resource, 1)
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: len(shared.provider.calls(resource)) > 1, LEASE_SECONDS + SLACK, "nobody went on"
    )
    shared.provider.open("child")
    shared.all_ended([held, waiter])
    assert most_in_flight(shared.provider.calls(resource)) == 1


def test_a_late_release_frees_nobody_elses_permit(shared: Deployment) -> None:
    resource = shared.limited("stopped", max_concurrency=1)
    with held_by_a_victim(shared, resource, "old") as (held, victim):
        second = shared.start(resource, gate="second")
        shared.waiting(resource, 1)
        os.killpg(victim, signal.SIGSTOP)
        try:
            calls = shared.began(resource, 2, within=LEASE_SECONDS + SLACK)
            assert calls[1].workflow == second
        finally:
            os.killpg(victim, signal.SIGCONT)
        holders = shared.status(resource).holders
        assert [holder.workflow_id for holder in holders] == [second]
        crowd = shared.crowd(resource, CROWD, ms=CROWD_MS)
        shared.provider.open("second")
        shared.began(resource, 2 + CROWD // 4)
        # Nobody could call back the call of the lost claim. Now it comes home late.
        shared.provider.open("old")
        eventually(lambda: shared.provider.calls(resource)[0].ended, 20, "the old call never ended")
        shared.all_ended([held, second, *crowd])
    calls = shared.provider.calls(resource)
    stale = calls[0]
    assert most_in_flight(calls, apart=[stale]) == 1, "a permit was freed twice"
    assert lost(calls) in ([], [stale])
    assert {call.workflow for call in calls} == {held, second, *crowd}
    eventually(lambda: shared.status(resource).used == 0, 10, "its permit is still held")


def _holders(deployment: Deployment, resource: str) -> set[str]:
    return {holder.workflow_id for holder in deployment.status(resource).holders}


def _child_of(deployment: Deployment, workflow_id: str) -> int:
    """Return the pool child that runs a workflow; a claim's owner names its process."""
    owner = deployment.stage.kernel.get(workflow_id).claim_owner
    assert owner is not None
    return int(owner.split(":")[-2])
