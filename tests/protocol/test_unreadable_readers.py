"""What cannot be read ends no drain, no page of starts and no burial of the dead."""

import logging
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from kernel import ActivityContext, Kernel, Unreadable
from kernel.definition import Definition
from kernel.engine import taking
from kernel.publish import StartItem
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

#: What a later version might store, and this one does not know.
NEWER = {"waits": [{"step": "a", "kind": "dream"}]}


@pytest.fixture
def instances(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Collection[Any]:
    return mongo_client[mongo_db_name]["workflow_instances"]


@pytest.fixture
def ran() -> list[str]:
    return []


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
