"""Timers by the second hand and, when Redis has lost them or is not there, by the look-around."""

from collections.abc import Callable
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    Sleep,
    StoreUnavailable,
    WaitForSignal,
    workflow_id_of,
)
from kernel.store import GroupedInstances
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

WORKFLOW_ID = workflow_id_of("test:1")


def wait(ctx: ActivityContext) -> Any:
    if ctx.resume is not None:
        return ctx.resume.kind
    return WaitForSignal("s", wait_key="k", poll_after=60) if ctx.input else Sleep(60)


ORDER = definition("test.timer", {"a": wait})


def asleep(kernel: Kernel, *, by_signal: bool = False) -> None:
    start(kernel, ORDER, by_signal)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.WAITING


def test_the_second_hand_wakes_a_sleeper_within_its_tick(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    asleep(kernel)
    TimeShift(kernel).advance(seconds=59)
    assert kernel.tick() == 0
    TimeShift(kernel).advance(seconds=1)
    assert kernel.tick() == 1
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.RUNNING
    assert kernel.tick() == 0
    assert kernel.drain([QUEUE]) == 1
    assert kernel.get(WORKFLOW_ID).output == {"a": "timer"}


@pytest.mark.parametrize(("by_signal", "kind"), [(False, "timer"), (True, "poll")])
def test_the_look_around_alone_wakes_what_redis_has_forgotten(
    make_kernel: MakeKernel, flush: Callable[[], None], by_signal: bool, kind: str
) -> None:
    kernel = make_kernel(ORDER)
    asleep(kernel, by_signal=by_signal)
    flush()
    TimeShift(kernel).advance(seconds=61)
    assert kernel.reconcile().found["due_waits"] == 1
    assert kernel.reconcile().found["due_waits"] == 0
    kernel.drain([QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": kind}


def test_without_redis_tick_and_look_around_both_find_due_waits(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER, with_redis=False)
    asleep(kernel)
    TimeShift(kernel).advance(seconds=61)
    assert kernel.tick() == 1
    assert kernel.reconcile().found["due_waits"] == 0
    kernel.drain([QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "timer"}


def test_a_timer_that_was_left_behind_by_a_signal_wakes_nobody(make_kernel: MakeKernel) -> None:
    def twice(ctx: ActivityContext) -> Any:
        if ctx.checkpoint is None:
            return WaitForSignal("s", wait_key="k", poll_after=60, checkpoint=1)
        return ctx.resume.kind if ctx.checkpoint == 2 and ctx.resume else Sleep(600, checkpoint=2)

    order = definition("test.late", {"a": twice})
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    kernel.deliver_signal(workflow_id=WORKFLOW_ID, signal_type="s", wait_key="k", signal_id="one")
    kernel.drain([QUEUE])
    TimeShift(kernel).advance(seconds=61)  # the poll's time, no longer anybody's
    assert run_until_idle(kernel, [QUEUE]) == 0
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.WAITING
    TimeShift(kernel).advance(seconds=600)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "timer"}


def test_a_hint_that_comes_too_early_is_put_back_with_the_right_time(
    make_kernel: MakeKernel,
) -> None:
    kernel = make_kernel(ORDER)
    asleep(kernel)
    kernel.hints.hints.put_timer(QUEUE, WORKFLOW_ID, at_ms=0)
    assert kernel.tick() == 0
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.WAITING
    TimeShift(kernel).advance(seconds=61)
    assert kernel.tick() == 1


def test_a_timer_outlives_a_wake_up_that_failed(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise StoreUnavailable("gone")

    kernel = make_kernel(ORDER)
    asleep(kernel)
    assert kernel.tick() == 0
    TimeShift(kernel).advance(seconds=61)
    monkeypatch.setattr(GroupedInstances, "commit_all", fails)
    with pytest.raises(StoreUnavailable):
        kernel.tick()
    monkeypatch.undo()
    assert kernel.tick() == 1


def test_one_that_could_not_be_woken_keeps_its_timer(
    make_kernel: MakeKernel, mongo_client: MongoClient[Any], mongo_db_name: str
) -> None:
    database = mongo_client[mongo_db_name]
    kernel = make_kernel(ORDER)
    asleep(kernel)
    assert kernel.tick() == 0
    refuses = {"$or": [{"biz_key": {"$ne": "test:1"}}, {"status": "waiting"}]}
    database.command("collMod", "workflow_instances", validator=refuses)
    TimeShift(kernel).advance(seconds=61)
    assert kernel.tick() == 0
    database.command("collMod", "workflow_instances", validator={})
    assert kernel.tick() == 1
