"""A document the server refuses to change, or no lane can take, keeps no other from running."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from pymongo.collection import Collection

from kernel import ActivityContext, Kernel
from kernel.definition import Definition
from kernel.store import claiming
from kernel.testing import TimeShift
from tests.kit.foreign import alter
from tests.kit.kernels import QUEUE, MakeKernel, definition, start


@pytest.fixture
def order(ran: list[str]) -> Definition:
    def step(ctx: ActivityContext) -> None:
        ran.append(ctx.biz_key)

    return definition("test.refused", {"a": step})


FIFTH_LANE = {"priority": 4}


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("with_redis", [True, False])
def test_the_others_are_claimed_and_it_stays_as_it_is(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition, ran: list[str],
    with_redis: bool, slots: int, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    kernel = make_kernel(order, with_redis=with_redis, slots_per_child=slots)
    for n in range(4):
        start(kernel, order, biz_key=f"k{n}")
    alter(instances, ["k0", "k2"], FIFTH_LANE)
    before = list(instances.find(FIFTH_LANE))
    with caplog.at_level(logging.ERROR, "baton"):
        kernel._parts.drain.poll([QUEUE])
    assert sorted(ran) == ["k1", "k3"]
    assert list(instances.find(FIFTH_LANE)) == before
    said = [record for record in caplog.records if "cannot be claimed" in record.getMessage()]
    assert said


def test_without_redis_however_many_are_refused_the_others_get_their_turn(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition, ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(claiming, "_TRIED_PAST", 2)
    kernel = make_kernel(order, with_redis=False)
    for n in range(7):
        start(kernel, order, biz_key=f"k{n}")
    alter(instances, [f"k{n}" for n in range(5)], FIFTH_LANE)
    for _ in range(3):
        kernel.drain([QUEUE])
    assert sorted(ran) == ["k5", "k6"]


def test_without_redis_one_is_tried_again_once_it_may_be_changed(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition, ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(claiming, "_REFUSED_SECONDS", 0.0)
    kernel = make_kernel(order, with_redis=False)
    start(kernel, order, biz_key="k0")
    alter(instances, ["k0"], FIFTH_LANE)
    kernel.drain([QUEUE])
    assert ran == []
    alter(instances, ["k0"], {"priority": 1})
    kernel.drain([QUEUE])
    assert ran == ["k0"]


#: What no lane of this version can take.
PLACES: list[dict[str, Any]] = [
    {"priority": 4}, {"priority": -1}, {"priority": "high"}, {"priority": 1.5}, {"priority": None},
    {"priority": True}, {"queue": None}, {"queue": 3}, {"queue": ""}, {"claimable_time": 3},
    {"claimable_time": "soon"},
]  # fmt: skip


def pushed(kernel: Kernel) -> set[str]:
    return {one.workflow_id for one in kernel.hints.hints.pop_many(QUEUE, 20)}


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("bad", ["k0", "k3"])
def test_after_a_flush_the_others_stand_in_their_lanes_again(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition,
    flush: Callable[[], None], place: dict[str, Any], bad: str,
) -> None:  # fmt: skip
    kernel = make_kernel(order)
    ids = {f"k{n}": start(kernel, order, biz_key=f"k{n}") for n in range(4)}
    alter(instances, [bad], place)
    flush()
    TimeShift(kernel).advance(seconds=2)
    kernel.tick()
    assert kernel.hints.hints.marker_present()
    assert pushed(kernel) == set(ids.values()) - {ids[bad]}
    assert kernel.reconcile().failed == {}
    assert pushed(kernel) == set(ids.values()) - {ids[bad]}


def test_a_page_of_lost_candidates_is_filled_past_those_no_lane_takes(
    make_kernel: MakeKernel, instances: Collection[Any], order: Definition,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    kernel = make_kernel(order)
    ids = [start(kernel, order, biz_key=f"k{n}") for n in range(6)]
    alter(instances, ["k0", "k1", "k2", "k4"], FIFTH_LANE)
    find = kernel._parts.scan.due_claimable
    with caplog.at_level(logging.ERROR, "baton.store"):
        assert [row["workflow_id"] for row in find(limit=1)] == [ids[3]]
    assert any(ids[0] in record.getMessage() for record in caplog.records)
    assert [row["workflow_id"] for row in find(limit=5)] == [ids[3], ids[5]]
