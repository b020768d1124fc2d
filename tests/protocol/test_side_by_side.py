"""Several claims in one process: as many as there are slots, and none at another's expense."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    KernelConfig,
    RetryPolicy,
    Step,
    StepStatus,
)
from kernel.errors import StoreUnavailable, UsageError
from kernel.hints import RedisHints
from kernel.testing import TimeShift
from tests.kit.kernels import LEASE_SECONDS, QUEUE, DeadWorker, MakeKernel, definition, start
from tests.kit.waiting import eventually, never

WAIT = 30


class Gate:
    """Activities that enter, are counted, and stay until they are let go."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.entered: list[str] = []
        self.open = threading.Event()
        self._lock = threading.Lock()

    def enter(self, ctx: ActivityContext) -> str:
        with self._lock:
            self.entered.append(ctx.biz_key)
            self.inside[ctx.biz_key] += 1
        assert self.open.wait(WAIT)
        with self._lock:
            self.inside[ctx.biz_key] -= 1
        return ctx.biz_key


def _draining(
    kernel: Any, pool: ThreadPoolExecutor, queues: list[str] | None = None
) -> Future[int]:
    return pool.submit(kernel.drain, queues or [QUEUE])


def test_as_many_claims_run_at_once_as_there_are_slots(make_kernel: MakeKernel) -> None:
    gate = Gate()
    of = definition("side.many", {"a": gate.enter})
    kernel = make_kernel(of, slots_per_child=4)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(6)]
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 4)
        never(lambda: gate.inside.total() > 4, during=0.3)
        gate.open.set()
        assert ran.result(WAIT) == 6
    assert {kernel.get(wid).status for wid in ids} == {InstanceStatus.COMPLETED}


def test_free_slots_go_on_taking_while_one_claim_is_long(make_kernel: MakeKernel) -> None:
    gate = Gate()
    long = definition("side.long", {"a": gate.enter})
    short = definition("side.short", {"a": lambda _: gate.open.set()})
    kernel = make_kernel(long, short, slots_per_child=2)
    first = start(kernel, long, biz_key="long")
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.entered)
        # Only the later one lets the earlier one go, and nobody rings for it.
        start(kernel, short, biz_key="short")
        assert ran.result(WAIT) == 2
    assert kernel.get(first).status is InstanceStatus.COMPLETED


def test_a_budget_of_claims_holds_side_by_side(make_kernel: MakeKernel) -> None:
    of = definition("side.budget", {"a": lambda _: 1})
    kernel = make_kernel(of, slots_per_child=8)
    for n in range(10):
        start(kernel, of, biz_key=f"k{n}")
    assert kernel.drain([QUEUE], max_claims=3) == 3
    assert kernel.drain([QUEUE]) == 7


def test_each_queue_keeps_to_its_own_slots(make_kernel: MakeKernel) -> None:
    gates = {"narrow": Gate(), "wide": Gate()}
    made = {
        queue: definition(f"side.{queue}", {"a": gate.enter}, queue=queue)
        for queue, gate in gates.items()
    }
    kernel = make_kernel(*made.values(), slots_per_child={"wide": 3})
    for queue, of in made.items():
        for n in range(4):
            start(kernel, of, biz_key=f"{queue}{n}")
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool, ["narrow", "wide"])
        eventually(lambda: gates["narrow"].inside.total() + gates["wide"].inside.total() == 3)
        never(lambda: gates["narrow"].inside.total() > 1, during=0.2)
        for gate in gates.values():
            gate.open.set()
        assert ran.result(WAIT) == 8


def test_an_interrupted_claim_runs_alone_after_the_others_are_home(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    gate = Gate()
    beside: list[int] = []
    suspect = definition("side.suspect", {"a": lambda _: beside.append(gate.inside.total())})
    other = definition("side.other", {"a": gate.enter})
    kernel = make_kernel(suspect, other, slots_per_child=4)
    died = dead_worker.begins(kernel, start(kernel, suspect, biz_key="died"))
    started = [start(kernel, other, biz_key=f"k{n}") for n in range(2)]
    kernel.reconcile()
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 2)
        eventually(lambda: kernel.get(died.workflow_id).claim_token != died.claim_token)
        late = start(kernel, other, biz_key="late")
        never(lambda: beside or gate.inside.total() > 2, during=0.3)
        gate.open.set()
        assert ran.result(WAIT) == 4
    assert beside == [0]
    state = kernel.get(died.workflow_id).steps["a"]
    assert (state.status, state.attempt, state.recoveries) == (StepStatus.COMPLETED, 2, 0)
    assert all(kernel.get(wid).status is InstanceStatus.COMPLETED for wid in [*started, late])


def test_a_stop_request_hands_every_claim_back_after_its_step(make_kernel: MakeKernel) -> None:
    gate = Gate()
    of = definition("side.stop", {"a": gate.enter, "b": lambda _: "b"})
    kernel = make_kernel(of, slots_per_child=4)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(4)]
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 4)
        kernel.request_stop()
        gate.open.set()
        assert ran.result(WAIT) == 4
    for workflow_id in ids:
        instance = kernel.get(workflow_id)
        assert instance.claim_token is None
        assert instance.steps["a"].status is StepStatus.COMPLETED
        assert instance.steps["b"].attempt == 0


def test_a_claim_lost_beside_others_costs_them_nothing(make_kernel: MakeKernel) -> None:
    gate = Gate()
    of = definition("side.lost", {"a": gate.enter, "b": lambda _: "b"})
    kernel = make_kernel(of, slots_per_child=8)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(8)]
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 8)
        assert kernel.supersede(ids[3], reason="obsolete")
        gate.open.set()
        assert ran.result(WAIT) == 8
    ended = [kernel.get(wid) for wid in ids]
    assert ended[3].status is InstanceStatus.CANCELED
    assert ended[3].steps["a"].status is StepStatus.RUNNING
    for instance in ended[:3] + ended[4:]:
        assert instance.status is InstanceStatus.COMPLETED
        assert [state.attempt for state in instance.steps.values()] == [1, 1]


def test_leases_of_all_claims_are_kept_while_they_run(make_kernel: MakeKernel) -> None:
    gate = Gate()
    of = definition("side.kept", {"a": gate.enter})
    kernel = make_kernel(of, slots_per_child=3, lease=1)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(3)]
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 3)
        first = [kernel.get(wid).claimable_time for wid in ids]
        eventually(
            lambda: all(
                kernel.get(wid).claimable_time > before
                for wid, before in zip(ids, first, strict=True)
            )
        )
        gate.open.set()
        ran.result(WAIT)
    assert [kernel.get(wid).steps["a"].attempt for wid in ids] == [1, 1, 1]


@pytest.mark.parametrize("slots", [0, 33, True, 1.5, {"content": 0}])
def test_slots_that_are_none_are_refused(slots: Any) -> None:
    with pytest.raises(UsageError, match="slots_per_child"):
        KernelConfig(mongo_url="mongodb://127.0.0.1/", slots_per_child=slots)


def test_a_retry_beside_a_long_claim_is_taken_without_a_wakeup(make_kernel: MakeKernel) -> None:
    gate = Gate()
    failed: list[int] = []

    def fails_once(ctx: ActivityContext) -> str:
        if not failed:
            failed.append(ctx.attempt)
            raise ValueError("once")
        gate.open.set()
        return "done"

    retry = RetryPolicy(max_retry=1, backoff="none")
    retrying = definition("side.retry", {"a": Step(fails_once, retry=retry)})
    long = definition("side.beside", {"a": gate.enter})
    kernel = make_kernel(retrying, long, slots_per_child=2)
    start(kernel, long, biz_key="long")
    again = start(kernel, retrying, biz_key="again")
    with ThreadPoolExecutor() as pool:
        _draining(kernel, pool).result(WAIT)
    assert kernel.get(again).steps["a"].attempt == 2


def test_claims_run_although_a_look_at_their_neighbour_fails(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = definition("side.look", {"a": lambda _: 1})
    kernel = make_kernel(of, slots_per_child=4)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(3)]
    assert kernel.supersede(ids[1], reason="a stale candidate, to be looked at")
    read = kernel._parts.store.read
    failed: list[str] = []

    def fail_once(workflow_id: str, *, majority: bool = False) -> Any:
        if workflow_id == ids[1] and not failed:
            failed.append(workflow_id)
            raise StoreUnavailable("away for a moment")
        return read(workflow_id, majority=majority)

    monkeypatch.setattr(kernel._parts.store, "read", fail_once)
    assert kernel.drain([QUEUE]) == 2
    assert failed
    for workflow_id in (ids[0], ids[2]):
        instance = kernel.get(workflow_id)
        assert (instance.status, instance.steps["a"].attempt) == (InstanceStatus.COMPLETED, 1)


def test_claims_taken_from_the_store_run_although_the_next_one_fails(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = definition("side.store", {"a": lambda _: 1})
    kernel = make_kernel(of, slots_per_child=4, with_redis=False)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(3)]
    claim_any = kernel._parts.store.claim_any
    asked: list[int] = []

    def fail_second(*args: Any, **kwargs: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise StoreUnavailable("away for a moment")
        return claim_any(*args, **kwargs)

    monkeypatch.setattr(kernel._parts.store, "claim_any", fail_second)
    assert kernel.drain([QUEUE]) == 3
    assert [kernel.get(wid).steps["a"].attempt for wid in ids] == [1, 1, 1]


def test_an_interrupted_claim_that_is_lost_while_it_waits_lets_no_other_run_beside(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    gate = Gate()
    suspect = definition("side.queue", {"a": gate.enter})
    kernel = make_kernel(suspect, slots_per_child=3, lease=1)
    ids = [start(kernel, suspect, biz_key=f"k{n}") for n in range(3)]
    for workflow_id in ids:
        dead_worker.begins(kernel, workflow_id, lease_over=False)
    TimeShift(kernel).advance(seconds=LEASE_SECONDS + 1)
    kernel.reconcile()
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: gate.inside.total() == 1)
        eventually(lambda: all(_is_held(kernel, wid) for wid in ids))
        waiting = next(wid for wid in ids if _entered(kernel, wid) == 1)
        assert kernel.supersede(waiting, reason="obsolete")
        # The loss is noticed within a third of the lease, and heeded within a turn of a second.
        never(lambda: gate.inside.total() > 1, during=2.0)
        gate.open.set()
        assert ran.result(WAIT) == 3
    assert sorted(gate.entered) == sorted(kernel.get(w).biz_key for w in ids if w != waiting)


def _is_held(kernel: Kernel, workflow_id: str) -> bool:
    """Tell whether this process holds the instance: the dead one's token has been replaced."""
    return kernel.get(workflow_id).claim_owner == kernel.owner


def _entered(kernel: Kernel, workflow_id: str) -> int:
    return kernel.get(workflow_id).steps["a"].attempt


@pytest.mark.parametrize("slots", [1, 3])
def test_nobody_waits_for_claims_whose_code_runs(make_kernel: MakeKernel, slots: int) -> None:
    gate = Gate()
    of = definition(
        "side.rest",
        {"a": gate.enter, "b": gate.enter, "c": lambda _: "c"},
        depends_on={"a": [], "b": [], "c": ["a", "b"]},
    )
    kernel = make_kernel(of, slots_per_child=slots)
    motion = kernel._parts.machine.motion
    for number in range(slots):
        start(kernel, of, biz_key=f"k{number}")
    with ThreadPoolExecutor() as pool:
        ran = _draining(kernel, pool)
        eventually(lambda: len(gate.entered) == 2 * slots)
        eventually(lambda: motion._count <= 0)
        gate.open.set()
        assert ran.result(WAIT) == slots
    assert motion._count == 0


def test_an_instance_that_stands_in_two_lanes_is_held_once(make_kernel: MakeKernel) -> None:
    entered: list[str] = []
    of = definition("side.twice", {"a": lambda ctx: entered.append(ctx.biz_key)})
    kernel = make_kernel(of, slots_per_child=4)
    doubled = start(kernel, of, biz_key="k0")
    start(kernel, of, biz_key="k1")
    hints = kernel.hints.hints
    assert isinstance(hints, RedisHints)
    for lane in hints._keys.of(QUEUE).lanes:
        hints._client.zadd(lane, {doubled: 1})
    kernel.drain([QUEUE])
    assert sorted(entered) == ["k0", "k1"]
    assert kernel.get(doubled).steps["a"].attempt == 1
