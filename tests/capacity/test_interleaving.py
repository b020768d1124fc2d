"""Acquire, release, reserve and hand on in random order by many threads; the seed is printed.

`BATON_CAPACITY_SEED` repeats a run, `BATON_CAPACITY_ROUNDS` makes it longer.
"""

import logging
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel import ActivityContext, InstanceStatus, Kernel, Priority, Step
from kernel.protocol.resources import PermitOwner, ResourceState, rate_window
from kernel.store import CapacityStore, Connection, Leaving, StoreClock, ensure_schema
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition
from tests.kit.waiting import eventually

log = logging.getLogger(__name__)
SEED = int(os.environ.get("BATON_CAPACITY_SEED", random.randrange(2**31)))
ROUNDS = int(os.environ.get("BATON_CAPACITY_ROUNDS", "1"))
LIMITS = {"x": 1, "y": 2, "z": 3}
R = "x"


@pytest.fixture
def store(mongo_url: str, mongo_db_name: str) -> Iterator[CapacityStore]:
    connection = Connection(mongo_url, database=mongo_db_name)
    ensure_schema(connection)
    yield CapacityStore(connection, StoreClock())
    connection.close()


def test_no_order_of_updates_oversteps_a_limit(store: CapacityStore) -> None:
    log.warning("BATON_CAPACITY_SEED=%d", SEED)
    store.set_limits(R, {"max_concurrency": 3}, by="", reason="", expires_ms=None, if_revision=None)
    inside: dict[str, int] = {}
    lock = threading.Lock()
    overstepped: list[str] = []

    def check(state: ResourceState, asked: Sequence[PermitOwner] = ()) -> None:
        with lock:
            inside.update({each.workflow_id: int(state.holds(each)) for each in asked})
            if sum(inside.values()) > 3:
                overstepped.append(f"{sum(inside.values())} believe to hold")
        if len(state.holders) + len(state.reserved) > 3:
            overstepped.append(f"{len(state.holders)} hold, {len(state.reserved)} reserved")

    def act(thread: int) -> None:
        chance = random.Random(SEED + thread)
        mine = [PermitOwner(f"wf_{thread}_{n}", "s", f"t{thread}{n}") for n in range(3)]
        for _ in range(40 * ROUNDS):
            owner = chance.choice(mine)
            match chance.randrange(7):
                case 0 | 1 | 2:
                    check(store.acquire(R, [owner], lease_ms=60_000), [owner])
                case 3 | 4:
                    with lock:
                        inside[owner.workflow_id] = 0
                    to = tuple(each for each in mine if each is not owner)
                    leaving = Leaving(
                        owner=owner,
                        then_reserve=(chance.choice(mine).workflow_id,),
                        then_pass=to if chance.random() < 0.5 else (),
                    )
                    check(store.exchange(R, leaving=[leaving], lease_ms=60_000), mine)
                case 5:
                    check(store.reserve(R, [each.workflow_id for each in mine]))
                case _:
                    store.clear_line(R, store.read(R).line)
                    store.unreserve(R, [owner.workflow_id])
        with lock:
            inside.update({each.workflow_id: 0 for each in mine})
        store.release(R, mine)
        store.unreserve(R, [each.workflow_id for each in mine])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(act, range(6)))
    assert overstepped == []
    state = store.read(R)
    assert (state.holders, state.reserved) == ((), ())


def test_workflows_of_many_kernels_end_and_no_limit_is_overstepped(
    make_kernel: MakeKernel,
) -> None:
    log.warning("BATON_CAPACITY_SEED=%d", SEED)
    chance = random.Random(SEED)
    calls = Calls(chance)
    order = definition("test.mixed", {n: Step(calls, traffic_resource=_named(n)) for n in "abc"})
    kernels = [make_kernel(order, slots_per_child=3) for _ in range(3)]
    kernels[0].tick()
    for name, most in LIMITS.items():
        kernels[0].capacity.set_limit(name, max_concurrency=most)
    ids = []
    for n in range(16 * ROUNDS):
        value = {step: chance.sample(sorted(LIMITS), chance.randrange(4)) for step in "abc"}
        started = kernels[0].start_or_resume(
            order.plan, biz_key=f"t:{n}", input=value, priority=Priority(chance.randrange(4))
        )
        ids.append(started.workflow_id)
    threads = [threading.Thread(target=_serve, args=(kernel, ids)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    assert {kernels[0].get(each).status for each in ids} == {InstanceStatus.COMPLETED}
    assert calls.overstepped == []
    for name in LIMITS:
        status = kernels[0].capacity.status(name)
        assert (status.used, status.waiting) == (0, 0), name
    attempts = {s.attempt for i in ids for s in kernels[0].get(i).steps.values()}
    assert attempts == {1}, "waiting used an attempt up"


def _named(step: str) -> Callable[[dict[str, list[str]]], list[str]]:
    return lambda value: value[step]


class Calls:
    """An activity that knows how many of its kind are inside on each resource."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lock = threading.Lock()
        self._inside: Counter[str] = Counter()
        self.overstepped: list[str] = []

    def __call__(self, ctx: ActivityContext) -> None:
        names = ctx.input[ctx.step]
        with self._lock:
            self._inside.update(names)
            self.overstepped += [n for n in names if self._inside[n] > LIMITS[n]]
            seconds = self._chance.random() / 50
        ctx.cancelled.wait(seconds)
        with self._lock:
            self._inside.subtract(names)


def _serve(kernel: Kernel, ids: list[str]) -> None:
    def is_over() -> bool:
        kernel.tick()
        kernel._parts.drain.poll([QUEUE])
        return all(kernel.get(each).status.is_terminal for each in ids)

    eventually(is_over, timeout=140)


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_starts_of_workflows_come_no_faster_than_their_rate(
    make_kernel: MakeKernel, rate: float
) -> None:
    order = definition("test.rate", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(order)
    kernel.tick()
    kernel.capacity.set_limit(R, max_starts_per_second=rate, max_concurrency=5)
    ids = [kernel.start_or_resume(order.plan, biz_key=f"t:{n}").workflow_id for n in range(6)]
    while any(not kernel.get(each).status.is_terminal for each in ids):
        kernel.drain([QUEUE])
        TimeShift(kernel).advance(seconds=0.2)
        kernel.tick()
    kept = kernel._parts.permits.store.read(R).starts
    count, window = rate_window(rate)
    assert len(kept) == 6
    for first in kept:
        assert sum(first <= other <= first + window for other in kept) <= count
