"""Whatever Redis or the broker lost is found again from MongoDB alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    KernelConfig,
    Priority,
    Reconciled,
    Sleep,
)
from kernel.definition import Definition
from kernel.hints import LaneDepth
from kernel.reconcile import duties
from kernel.store import DutyLeases
from kernel.store.connection import Connection
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start


def work(ctx: ActivityContext) -> Any:
    return Sleep(60) if ctx.input == "sleep" and ctx.resume is None else "done"


ORDER = definition("test.lost", {"a": work})


def lanes(kernel: Kernel) -> dict[int, int]:
    depth: dict[int, LaneDepth] = kernel.hints.hints.depth(QUEUE)
    return {lane: each.total for lane, each in depth.items() if each.total}


def test_after_a_flush_everything_stands_in_its_own_lane_again(
    make_kernel: MakeKernel, flush: Callable[[], None]
) -> None:
    kernel = make_kernel(ORDER)
    for priority in Priority:
        for n in range(priority + 1):
            kernel.start_or_resume(ORDER.plan, biz_key=f"{priority}-{n}", priority=priority)
    before = lanes(kernel)
    assert before == {0: 1, 1: 2, 2: 3, 3: 4}
    flush()
    assert lanes(kernel) == {}
    kernel.tick()
    assert lanes(kernel) == before
    kernel.reconcile()
    assert lanes(kernel) == before, "pushing again moves nothing"
    run_until_idle(kernel, [QUEUE])
    assert {i.status for i in kernel.list_instances()} == {InstanceStatus.COMPLETED}


@pytest.mark.parametrize("finder", ["reconcile", "tick"])
def test_a_sleeper_wakes_though_its_timer_was_lost(
    make_kernel: MakeKernel, flush: Callable[[], None], finder: str
) -> None:
    kernel = make_kernel(ORDER)
    workflow_id = start(kernel, ORDER, "sleep")
    run_until_idle(kernel, [QUEUE])
    flush()
    TimeShift(kernel).advance(seconds=61)
    getattr(kernel, finder)()
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}


def test_a_registration_whose_push_was_lost_is_found(
    make_kernel: MakeKernel, flush: Callable[[], None]
) -> None:
    kernel = make_kernel(ORDER)
    kernel.tick()
    workflow_id = start(kernel, ORDER)
    assert kernel.hints.hints.pop(QUEUE) == workflow_id
    assert kernel.drain([QUEUE]) == 0
    found = kernel.reconcile()
    assert found.found["lost_candidates"] == 1
    assert kernel.drain([QUEUE]) == 1


def test_what_is_not_due_is_left_alone(
    make_kernel: MakeKernel, dead_worker: DeadWorker, flush: Callable[[], None]
) -> None:
    kernel = make_kernel(ORDER)
    asleep = start(kernel, ORDER, "sleep", biz_key="asleep")
    run_until_idle(kernel, [QUEUE])
    held = start(kernel, ORDER, biz_key="held")
    dead_worker.begins(kernel, held, lease_over=False)
    flush()
    before = (kernel.get(asleep), kernel.get(held))
    found = kernel.reconcile()
    assert found.ran
    assert not any(found.found.values())
    assert (kernel.get(asleep), kernel.get(held)) == before
    assert kernel.drain([QUEUE]) == 0


def test_cursors_take_a_run_past_its_bound_and_the_next_one_further(
    make_kernel: MakeKernel, flush: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_BOUND", 3)
    monkeypatch.setattr(duties, "_TURNS", 2)
    kernel = make_kernel(ORDER)
    for n in range(10):
        start(kernel, ORDER, biz_key=f"k{n}")
    kernel.hints.hints.set_marker()
    assert len(kernel.hints.hints.pop_many(QUEUE, 20)) == 10
    seen = []
    for _ in range(2):
        kernel.reconcile()
        seen.append(sum(lanes(kernel).values()))
    assert seen == [6, 10]


def test_many_sleepers_over_the_bound_all_wake(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_BOUND", 3)
    kernel = make_kernel(ORDER, with_redis=False)
    ids = [start(kernel, ORDER, "sleep", biz_key=f"k{n}") for n in range(10)]
    kernel.drain([QUEUE])
    TimeShift(kernel).advance(seconds=61)
    assert kernel.reconcile().found["due_waits"] == 10
    kernel.drain([QUEUE])
    assert {kernel.get(each).status for each in ids} == {InstanceStatus.COMPLETED}


def test_of_two_reconciliations_at_once_one_works(
    make_kernel: MakeKernel, mongo_url: str, mongo_db_name: str
) -> None:
    kernel = make_kernel(ORDER)
    connection = Connection(mongo_url, database=mongo_db_name)
    leases = DutyLeases(connection, kernel.clock)
    assert leases.acquire(duties.DUTY, "elsewhere", lease_ms=60_000)
    assert not kernel.reconcile().ran
    TimeShift(kernel).advance(seconds=61)
    assert kernel.reconcile().ran, "a dead holder's duty is over by itself"
    connection.close()


def test_racing_reconciliations_are_harmless(make_kernel: MakeKernel) -> None:
    kernels = [make_kernel(ORDER) for _ in range(4)]
    for n in range(20):
        start(kernels[0], ORDER, "sleep", biz_key=f"k{n}")
    run_until_idle(kernels[0], [QUEUE])
    results: list[Reconciled] = []
    for kernel in kernels:
        TimeShift(kernel).advance(seconds=61)
    threads = [
        threading.Thread(target=lambda k=kernel: results.append(k.reconcile()))
        for kernel in kernels
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(each.found.get("due_waits", 0) for each in results) == 20
    run_until_idle(kernels[0], [QUEUE])
    instances = kernels[0].list_instances()
    assert {i.status for i in instances} == {InstanceStatus.COMPLETED}
    assert {i.steps["a"].attempt for i in instances} == {1}


def test_tick_frees_what_a_silent_worker_left(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    order = definition("test.hang", {"a": lambda _: "done"})
    kernel = make_kernel(order)
    kernel.tick()
    workflow_id = start(kernel, order)
    left = dead_worker.begins(kernel, workflow_id, lease_over=False)
    kernel.drain([QUEUE])  # looks at the candidate, finds it held, and notes its lease
    TimeShift(kernel).advance(seconds=16)
    assert left.claim_token is not None
    assert kernel.tick() == 1
    assert kernel.drain([QUEUE]) == 1
    assert kernel.get(workflow_id).output == {"a": "done"}


def test_tick_leaves_a_renewed_lease_alone(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    kernel = make_kernel(ORDER)
    kernel.tick()
    workflow_id = start(kernel, ORDER)
    left = dead_worker.begins(kernel, workflow_id, lease_over=False)
    kernel.drain([QUEUE])
    TimeShift(kernel).advance(seconds=14)
    assert left.claim_token is not None
    store = dead_worker.store(kernel)
    assert store.renew([(workflow_id, left.claim_token)], lease_ms=15_000) == set()
    TimeShift(kernel).advance(seconds=2)
    assert kernel.tick() == 0
    assert kernel.drain([QUEUE]) == 0
    TimeShift(kernel).advance(seconds=14)
    assert kernel.tick() == 1
    assert kernel.drain([QUEUE]) == 1


def test_tick_rings_for_what_waits_too_long(make_kernel: MakeKernel) -> None:
    rung: list[str] = []
    kernel = make_kernel(ORDER, ring=rung.append)
    kernel.tick()
    start(kernel, ORDER)
    assert rung == [QUEUE], "a registration rings"
    start(kernel, ORDER, biz_key="another")
    assert rung == [QUEUE], "one message a bell"
    TimeShift(kernel).advance(seconds=5)
    kernel.tick()
    kernel.tick()
    assert rung == [QUEUE, QUEUE]


def test_reconcile_rings_for_what_it_finds(
    make_kernel: MakeKernel, flush: Callable[[], None]
) -> None:
    rung: list[str] = []
    kernel = make_kernel(ORDER, ring=rung.append)
    start(kernel, ORDER)
    flush()
    assert rung == [QUEUE], "a registration rings"
    kernel.reconcile()
    assert rung == [QUEUE, QUEUE]


def test_a_bell_that_fails_undoes_nothing(make_kernel: MakeKernel) -> None:
    def broken(queue: str) -> None:
        raise ConnectionError("the broker is down")

    kernel = make_kernel(ORDER, ring=broken)
    workflow_id = start(kernel, ORDER)
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED


@pytest.mark.parametrize("redis_url", ["redis://127.0.0.1:1/0"])
def test_with_redis_dead_everything_still_runs(
    mongo_url: str, mongo_db_name: str, redis_url: str
) -> None:
    kernel = Kernel.connect(
        KernelConfig(mongo_url=mongo_url, redis_url=redis_url, database=mongo_db_name)
    )
    kernel.ensure_schema()
    kernel.register(ORDER)
    ids = [start(kernel, ORDER, value, biz_key=value) for value in ("plain", "sleep")]
    run_until_idle(kernel, [QUEUE])
    TimeShift(kernel).advance(seconds=61)
    assert kernel.reconcile().found["due_waits"] == 1
    run_until_idle(kernel, [QUEUE])
    assert [kernel.get(each).status for each in ids] == [InstanceStatus.COMPLETED] * 2
    kernel.close()


def test_without_redis_polling_finds_sleepers_and_silent_workers(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    kernel = make_kernel(ORDER, with_redis=False)
    left = start(kernel, ORDER, biz_key="left")
    dead_worker.begins(kernel, left)
    assert kernel.tick() == 0
    assert kernel.drain([QUEUE]) == 1
    assert kernel.get(left).output == {"a": "done"}


def test_another_queue_is_not_served(make_kernel: MakeKernel) -> None:
    order: Definition = definition("test.media", {"a": work}, queue="media")
    for with_redis in (True, False):
        kernel = make_kernel(order, with_redis=with_redis)
        start(kernel, order, biz_key=str(with_redis))
        assert kernel.drain([QUEUE]) == 0
        assert kernel.drain(["media"]) == 1
