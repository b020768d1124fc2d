"""What cannot be read ends no drain, no page of starts and no burial of the dead."""

import logging
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from kernel import ActivityContext, InvariantViolation, Kernel, Sleep, Unreadable, limits
from kernel.definition import Definition
from kernel.engine import taking
from kernel.keeper.freeing import free_claim
from kernel.model import InstanceStatus
from kernel.publish import StartItem
from kernel.testing import TimeShift
from tests.kit.foreign import alter
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

#: What a later version might store, and this one does not know.
NEWER = {"waits": [{"step": "a", "kind": "dream"}]}


@pytest.fixture
def order(ran: list[str]) -> Definition:
    def step(ctx: ActivityContext) -> None:
        ran.append(ctx.biz_key)

    return definition("test.readers", {"a": step})


@pytest.mark.parametrize("slots", [1, 4])
def test_a_drain_without_redis_goes_on_past_them(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition, ran: list[str],
    slots: int,
) -> None:  # fmt: skip
    kernel = make_kernel(order, with_redis=False, slots_per_child=slots)
    ids = [start(kernel, order, biz_key=f"k{n}") for n in range(9)]
    instances.update_many({"workflow_id": {"$in": ids[:6]}}, {"$set": NEWER})
    kernel.drain([QUEUE])
    assert sorted(ran) == ["k6", "k7", "k8"]


def test_one_look_for_claims_is_bounded_however_many_they_are(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(taking, "_LOOKS_PAST", 3)
    kernel = make_kernel(order, with_redis=False)
    for n in range(5):
        start(kernel, order, biz_key=f"k{n}")
    instances.update_many({}, {"$set": NEWER})
    before = instances.distinct("revision")
    kernel.drain([QUEUE])
    assert instances.count_documents({"revision": {"$in": before}}) == 2


@pytest.mark.parametrize("per_page", [3, limits.PAGE_WRITES])
def test_a_page_of_starts_registers_all_others_and_tells_of_it_then(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition, ran: list[str],
    monkeypatch: pytest.MonkeyPatch, per_page: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(limits, "PAGE_WRITES", per_page)
    kernel = make_kernel(order)
    workflow_id = start(kernel, order, biz_key="k1")
    instances.update_one({"workflow_id": workflow_id}, {"$set": NEWER})
    before = instances.find_one({"workflow_id": workflow_id})
    for _ in range(2):
        with pytest.raises(Unreadable, match=workflow_id):
            kernel.start_many(order.plan, [StartItem(f"k{n}") for n in range(7)])
        with pytest.raises(Unreadable, match=workflow_id):
            kernel.start_or_resume(order.plan, biz_key="k1")
    assert instances.find_one({"workflow_id": workflow_id}) == before
    assert instances.count_documents({}) == 7
    instances.update_one({"workflow_id": workflow_id}, {"$set": {"waits": []}})
    kernel.drain([QUEUE])
    assert sorted(ran) == [f"k{n}" for n in range(7)]


def test_a_document_the_server_refuses_ends_no_later_page_of_starts(
    make_kernel: MakeKernel, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str,
    instances: Collection[Any], order: Definition, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(limits, "PAGE_WRITES", 2)
    kernel = make_kernel(order)
    mongo_client[mongo_db_name].command(
        "collMod", "workflow_instances", validator={"biz_key": {"$ne": "k0"}}
    )
    with pytest.raises(InvariantViolation):
        kernel.start_many(order.plan, [StartItem(f"k{n}") for n in range(6)])
    assert sorted(instances.distinct("biz_key")) == ["k1", "k2", "k3", "k4", "k5"]


@pytest.mark.parametrize("steps", [[], None, "x", {"a": 3}], ids=str)
@pytest.mark.parametrize("by", ["tick", "reconcile"])
@pytest.mark.parametrize("with_redis", [True, False])
def test_steps_of_another_shape_keep_no_other_asleep(
    make_kernel: MakeKernel, instances: Collection[Any], ran: list[str],
    steps: object, by: str, with_redis: bool,
) -> None:  # fmt: skip
    def step(ctx: ActivityContext) -> Any:
        return ran.append(ctx.biz_key) if ctx.resume else Sleep(60)

    sleeper = definition("test.readers.sleep", {"a": step})
    kernel = make_kernel(sleeper, with_redis=with_redis)
    for n in range(3):
        start(kernel, sleeper, biz_key=f"k{n}")
    kernel.drain([QUEUE])
    alter(instances, ["k0"], {"steps": steps})
    TimeShift(kernel).advance(seconds=61)
    getattr(kernel, by)()
    kernel.drain([QUEUE])
    assert sorted(ran) == ["k1", "k2"]
    assert any(one.invariant == 8 for one in kernel.verify())


def claimed(kernel: Kernel, of: Definition, biz_key: str) -> str:
    """Register an instance and have somebody elsewhere hold its claim, under the token `t`."""
    workflow_id = start(kernel, of, biz_key=biz_key)
    stored = kernel._parts.store.claim(
        workflow_id,
        fingerprints=[of.plan.fingerprint],
        token="t",
        owner="elsewhere:1:1",
        lease_ms=15_000,
    )
    assert stored is not None
    return workflow_id


def test_a_dead_ones_claim_that_cannot_be_read_is_left_to_its_lease(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    kernel = make_kernel(order)
    parts = kernel._parts
    workflow_id = claimed(kernel, order, "k0")
    instances.update_one({"workflow_id": workflow_id}, {"$set": NEWER})
    before = instances.find_one({"workflow_id": workflow_id})
    with caplog.at_level(logging.ERROR, "baton.keeper"):
        freed = free_claim(
            parts.store,
            parts.hints,
            parts.permits.handing_on,
            workflow_id=workflow_id,
            token="t",
            culprit=None,
        )
    assert not freed
    assert any(workflow_id in record.getMessage() for record in caplog.records)
    assert instances.find_one({"workflow_id": workflow_id}) == before


def test_standings_are_told_of_what_cannot_be_read(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition
) -> None:
    kernel = make_kernel(order)
    for n in range(4):
        start(kernel, order, biz_key=f"k{n}", fencing_token=n + 1)
    changes: list[dict[str, Any]] = [NEWER, {"status": "paused"}, {"fencing_token": "third"}]
    for n, change in enumerate(changes):
        alter(instances, [f"k{n}"], change)
    running = InstanceStatus.RUNNING
    assert kernel.rounds_of([f"k{n}" for n in range(5)]) == {
        "k0": (running, 1),
        "k1": (None, 2),
        "k2": (running, None),
        "k3": (running, 4),
    }
