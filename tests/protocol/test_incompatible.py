"""An unknown step protocol is never guessed at; a type switched off stays put."""

from typing import Any

import pytest

from kernel import InstanceStatus, Kernel, Reason
from kernel.store import Served, WorkerBeats
from kernel.store.connection import Connection
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start


def made_of(*steps: str, seen: list[str]) -> Any:
    return definition("test.versions", {s: lambda ctx: seen.append(ctx.step) for s in steps})


@pytest.mark.parametrize("with_redis", [True, False])
def test_an_instance_of_another_protocol_waits_for_a_worker_that_knows_it(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    seen_old: list[str] = []
    seen_new: list[str] = []
    old, new = made_of("a", "b", seen=seen_old), made_of("a", "c", seen=seen_new)
    old_worker = make_kernel(old, with_redis=with_redis)
    new_worker = make_kernel(new, with_redis=with_redis)
    workflow_id = start(old_worker, old)
    assert run_until_idle(new_worker, [QUEUE]) == 0
    if with_redis:
        why = new_worker.why(workflow_id)
        assert why.reason is Reason.INCOMPATIBLE_DEFINITION
        assert f"stored {old.plan.fingerprint[:12]}" in why.sentence
        assert f"here {new.plan.fingerprint[:12]}" in why.sentence
    assert new_worker.get(workflow_id).revision == (2 if with_redis else 1)
    TimeShift(old_worker).advance(seconds=3601)
    old_worker.reconcile()
    assert run_until_idle(old_worker, [QUEUE]) == 1
    instance = old_worker.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.blocked_on is None
    assert (seen_old, seen_new) == (["a", "b"], [])


def test_while_a_worker_that_knows_it_is_about_it_comes_back_soon(
    make_kernel: MakeKernel, mongo_url: str, mongo_db_name: str
) -> None:
    old, new = made_of("a", "b", seen=[]), made_of("a", "c", seen=[])
    publisher, worker = make_kernel(old), make_kernel(new)
    connection = Connection(mongo_url, database=mongo_db_name)
    WorkerBeats(connection, worker.clock).beat(
        "elsewhere:1:1",
        queues=[QUEUE],
        served=[Served("test.versions", old.plan.fingerprint)],
        children=1,
        claims=0,
        stopping=False,
        claimed_ago=None,
    )
    connection.close()
    workflow_id = start(publisher, old)
    worker.drain([QUEUE])
    deferred = worker.get(workflow_id)
    wait = deferred.claimable_time - deferred.updated_at
    assert 0 < wait.total_seconds() <= 60


def test_a_deferred_claim_of_a_silent_worker_is_over(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    old, new = made_of("a", "b", seen=[]), made_of("a", "c", seen=[])
    publisher, worker = make_kernel(old), make_kernel(new)
    workflow_id = start(publisher, old)
    silent = dead_worker.begins(publisher, workflow_id)
    TimeShift(worker).advance(seconds=17)
    worker.reconcile()
    worker.drain([QUEUE])
    deferred = worker.get(workflow_id)
    assert deferred.blocked_on is not None
    assert deferred.blocked_on.reason is Reason.INCOMPATIBLE_DEFINITION
    assert deferred.claim_token is None
    assert silent.claim_token is not None
    lost = dead_worker.store(worker).renew([(workflow_id, silent.claim_token)], lease_ms=15_000)
    assert lost == {silent.claim_token}


def test_a_type_nobody_here_runs_stays_for_those_who_do(make_kernel: MakeKernel) -> None:
    seen: list[str] = []
    known, other = made_of("a", seen=seen), definition("test.other", {"a": lambda _: None})
    worker, other_worker = make_kernel(known), make_kernel(other)
    workflow_id = start(worker, known)
    assert other_worker.drain([QUEUE]) == 0
    assert other_worker.get(workflow_id).revision == 1
    assert worker.drain([QUEUE]) == 0, "put back for 5 s, so that it is not polled hot"
    TimeShift(worker).advance(seconds=6)
    assert worker.drain([QUEUE]) == 1
    assert seen == ["a"]


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_type_switched_off_is_published_and_stays_put(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    seen: list[str] = []
    off, on = made_of("a", seen=seen), definition("test.on", {"a": lambda _: seen.append("on")})
    halted = make_kernel(off, on, with_redis=with_redis, types_off=frozenset({"test.versions"}))
    workflow_id = start(halted, off)
    start(halted, on, biz_key="on")
    run_until_idle(halted, [QUEUE])
    assert seen == ["on"]
    _stays_put(halted, workflow_id)
    running = make_kernel(off, on, with_redis=with_redis)
    TimeShift(running).advance(seconds=6)
    run_until_idle(running, [QUEUE])
    assert seen == ["on", "a"]


def _stays_put(kernel: Kernel, workflow_id: str) -> None:
    instance = kernel.get(workflow_id)
    assert (instance.status, instance.revision) == (InstanceStatus.RUNNING, 1)
    assert instance.claim_token is None
