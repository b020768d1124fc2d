"""Permits of the dead, the frozen and the superseded: back in time, and nobody else's touched."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kernel import ActivityContext, InstanceStatus, Kernel, Step, StepStatus, limits
from kernel.engine.claims import HeldClaim, LiveClaim
from kernel.engine.running import run_claim
from kernel.errors import StoreUnavailable
from kernel.keeper.freeing import free_claim
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift
from tests.kit.kernels import LEASE_SECONDS, QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually, never
from tests.protocol.failing_mongo import LOST_ANSWERS, FailingMongo

R = "psp"


class Held:
    """A workflow whose call stays inside until it is let go, in a thread of its own."""

    def __init__(self, make_kernel: MakeKernel, **config: Any) -> None:
        self.inside, self.go = threading.Event(), threading.Event()
        self.ran: list[str] = []
        self.order = definition("test.held", {"a": Step(self._call, traffic_resource=R)})
        self.kernel: Kernel = make_kernel(self.order, **config)
        self.kernel.capacity.set_limit(R, max_concurrency=1)
        self.workflow_id = start(self.kernel, self.order, biz_key="held")
        self.thread = threading.Thread(target=self.kernel.drain, args=([QUEUE],), daemon=True)
        self.thread.start()
        assert self.inside.wait(20)

    def _call(self, ctx: ActivityContext) -> None:
        self.ran.append(ctx.biz_key)
        if ctx.biz_key == "held":
            self.inside.set()
            self.go.wait(60)

    def let_go(self) -> None:
        self.go.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def held(make_kernel: MakeKernel) -> Iterator[Held]:
    each = Held(make_kernel)
    yield each
    each.let_go()


def test_a_permit_is_renewed_with_its_claim(make_kernel: MakeKernel) -> None:
    each = Held(make_kernel, lease=1)
    since = each.kernel.capacity.status(R).holders[0].expires
    eventually(lambda: each.kernel.capacity.status(R).holders[0].expires > since)
    never(lambda: each.kernel.capacity.status(R).used != 1, during=1.5)
    each.let_go()
    assert each.kernel.capacity.status(R).used == 0


def test_the_late_release_of_a_frozen_holder_frees_nobody_elses_permit(
    held: Held, make_kernel: MakeKernel
) -> None:
    other = make_kernel(held.order)
    TimeShift(other).advance(seconds=LEASE_SECONDS + 1)  # as for one stopped for that long
    mine = PermitOwner("wf_other", "a", "token")
    state = other._parts.permits.store.acquire(R, [mine], lease_ms=60_000)
    assert state.holds(mine)
    held.let_go()
    assert [h.workflow_id for h in other.capacity.status(R).holders] == ["wf_other"]


def test_a_superseded_call_gives_its_permit_back_when_it_leaves(held: Held) -> None:
    held.kernel.supersede(held.workflow_id, reason="gone")
    waiting = start(held.kernel, held.order, biz_key="next")
    held.kernel.drain([QUEUE])
    assert held.kernel.get(waiting).steps["a"].status is StepStatus.PENDING
    held.let_go()
    held.kernel.drain([QUEUE])
    assert held.kernel.get(waiting).status is InstanceStatus.COMPLETED


def test_reconcile_frees_permits_of_claims_that_are_gone_and_leaves_the_living(
    held: Held,
) -> None:
    held.kernel.capacity.set_limit(R, max_concurrency=2)
    dead = PermitOwner(held.workflow_id, "a", "an earlier claim")
    unknown = PermitOwner("wf_nobody", "a", "token")
    store = held.kernel._parts.permits.store
    held.kernel.capacity.set_limit(R, max_concurrency=3)
    assert len(store.acquire(R, [dead, unknown], lease_ms=3_600_000).holders) == 3
    assert held.kernel.reconcile().found["ended_permits"] == 0, "claims that may be taken yet"
    TimeShift(held.kernel).advance(seconds=2 * limits.PASSING_SECONDS + 0.1)
    assert held.kernel.reconcile().found["ended_permits"] == 2
    assert [h.workflow_id for h in held.kernel.capacity.status(R).holders] == [held.workflow_id]
    assert held.kernel.reconcile().found["ended_permits"] == 0


def test_reconcile_finds_a_line_that_nothing_speaks_of(held: Held) -> None:
    waiting = start(held.kernel, held.order, biz_key="next")
    held.kernel.drain([QUEUE])
    store = held.kernel._parts.permits.store
    assert store.clear_line(R, store.read(R).line)
    held.kernel.reconcile()
    assert store.read(R).line > 0
    held.let_go()
    held.kernel.drain([QUEUE])
    assert held.kernel.get(waiting).status is InstanceStatus.COMPLETED


def test_freeing_a_dead_childs_claim_hands_its_permit_on_at_once(
    make_kernel: MakeKernel,
) -> None:
    order = definition("test.freed", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_concurrency=1)
    parts = kernel._parts
    dead = start(kernel, order, biz_key="dead")
    claimed = parts.store.claim(
        dead,
        fingerprints=[order.plan.fingerprint],
        token="t",
        owner="elsewhere:1:1",
        lease_ms=60_000,
    )
    assert claimed is not None
    owner = PermitOwner(dead, "a", "t")
    assert parts.permits.store.acquire(R, [owner], lease_ms=60_000).holds(owner)
    waiting = start(kernel, order, biz_key="waiting")
    kernel.drain([QUEUE])
    assert free_claim(
        parts.store,
        parts.hints,
        parts.permits.handing_on,
        workflow_id=dead,
        token="t",
        culprit=None,
    )
    kernel.drain([QUEUE])
    assert kernel.get(waiting).status is InstanceStatus.COMPLETED
    assert kernel.get(dead).status is InstanceStatus.COMPLETED


def test_a_permit_that_ran_out_is_handed_on_by_tick(make_kernel: MakeKernel) -> None:
    order = definition("test.expired", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(order)
    kernel.tick()
    kernel.capacity.set_limit(R, max_concurrency=1)
    owner = PermitOwner("wf_dead", "a", "t")
    kernel._parts.permits.store.acquire(R, [owner], lease_ms=15_000)
    waiting = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.tick() == 0
    TimeShift(kernel).advance(seconds=16)
    assert kernel.tick() == 1
    kernel.drain([QUEUE])
    assert kernel.get(waiting).status is InstanceStatus.COMPLETED


@pytest.fixture(scope="module")
def failing_mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingMongo]:
    with FailingMongo(tmp_path_factory.mktemp("failing")) as server:
        yield server


@pytest.mark.parametrize(
    ("command", "how"),
    [
        (command, how)
        for command in ("findAndModify", "update", "aggregate")
        for how in LOST_ANSWERS
        if "shuts down" not in how and not (command == "aggregate" and "after" in how)
    ],
)
def test_a_lost_answer_neither_loses_a_permit_nor_grants_two(
    make_kernel: MakeKernel, failing_mongo: FailingMongo, how: str, command: str
) -> None:
    order = definition(
        "test.lost", {n: Step(lambda _: None, traffic_resource=["x", "y"]) for n in "ab"}
    )
    kernel = make_kernel(order, mongo_url=failing_mongo.url, database=f"lost_{command.lower()}")
    for name in ("x", "y"):
        kernel.capacity.set_limit(name, max_concurrency=1)
    workflow_id = start(kernel, order, biz_key=f"test:{how}")
    with failing_mongo.failing(command, how=how), contextlib.suppress(StoreUnavailable):
        kernel.drain([QUEUE])

    def is_over() -> bool:
        with contextlib.suppress(StoreUnavailable):  # the driver believes in an absence for a while
            kernel.drain([QUEUE])
            kernel.reconcile()
        TimeShift(kernel).advance(seconds=LEASE_SECONDS + 1)
        return kernel.get(workflow_id).status is InstanceStatus.COMPLETED

    eventually(is_over, timeout=40)
    assert [kernel.capacity.status(n).used for n in ("x", "y")] == [0, 0]


def test_nobody_starts_while_the_authority_is_silent(
    make_kernel: MakeKernel, failing_mongo: FailingMongo
) -> None:
    entered: list[str] = []
    order = definition(
        "test.silent", {"a": Step(lambda c: entered.append(c.step), traffic_resource=R)}
    )
    kernel = make_kernel(order, mongo_url=failing_mongo.url, database="silent")
    workflow_id = start(kernel, order)
    held = kernel._parts.store.claim(
        workflow_id,
        fingerprints=[order.plan.fingerprint],
        token="t",
        owner="o",
        lease_ms=60_000,
    )
    assert held is not None
    claim = HeldClaim(held, LiveClaim(workflow_id, "t"))
    running = threading.Thread(target=run_claim, args=(kernel._parts.machine, claim, order))
    with failing_mongo.silent("findAndModify", "update", "aggregate"):
        running.start()
        never(lambda: entered, during=1.0)
    running.join(30)
    for _ in range(3):
        TimeShift(kernel).advance(seconds=31)
        kernel.drain([QUEUE])
    assert entered == ["a"]
    assert kernel.get(workflow_id).steps["a"].attempt == 1
