"""A call has a timeout; whether it listens or not decides what becomes of its claim."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import ActivityContext, InstanceStatus, RetryPolicy, Sleep, Step, StepStatus
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start

RETRY = RetryPolicy(max_retry=1, backoff="none")


def listening(ctx: ActivityContext) -> str:
    ctx.cancelled.wait(20)
    ctx.raise_if_cancelled()
    return "never"


def finishing_late(ctx: ActivityContext) -> str:
    ctx.cancelled.wait(20)
    return "too late"


async def awaiting(ctx: ActivityContext) -> str:
    await asyncio.sleep(20)
    return "never"


async def cleaning_up(ctx: ActivityContext) -> str:
    try:
        await asyncio.sleep(20)
    finally:
        await asyncio.sleep(0.01)
    return "never"


@pytest.mark.parametrize("slow", [listening, finishing_late, awaiting, cleaning_up])
def test_a_call_past_its_timeout_is_cancelled_and_tried_again(
    make_kernel: MakeKernel, slow: Callable[[ActivityContext], Any]
) -> None:
    calls: list[int] = []

    def activity(ctx: ActivityContext) -> Any:
        calls.append(ctx.attempt)
        return slow(ctx) if len(calls) == 1 else "in time"

    order = definition("test.slow", {"a": Step(activity, timeout=0.5, retry=RETRY)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "in time"}
    assert calls == [1, 2]
    assert [each.outcome for each in instance.steps["a"].attempts] == ["timeout", "completed"]


def test_without_retries_a_timeout_fails_the_step(make_kernel: MakeKernel) -> None:
    order = definition("test.slow", {"a": Step(listening, timeout=0.1)})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    error = kernel.get(workflow_id).error
    assert error is not None
    assert (error.code, error.message) == ("step_timeout", "no result within 0.1 s")


def test_a_checkpoint_outlives_a_timeout(make_kernel: MakeKernel) -> None:
    checkpoints: list[Any] = []

    def activity(ctx: ActivityContext) -> Any:
        checkpoints.append(ctx.checkpoint)
        if len(checkpoints) == 1:
            return Sleep(1, checkpoint={"job": 1})
        return listening(ctx) if len(checkpoints) == 2 else None

    order = definition("test.slow", {"a": Step(activity, timeout=0.5, retry=RETRY)})
    kernel = make_kernel(order)
    ended(kernel, start(kernel, order))
    assert checkpoints == [None, {"job": 1}, {"job": 1}]


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_call_that_does_not_listen_gives_its_workflow_up(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    release = threading.Event()
    calls: list[int] = []

    def deaf(ctx: ActivityContext) -> str:
        calls.append(ctx.attempt)
        if len(calls) == 1:
            release.wait(60)
            return "from the old attempt"
        return "from the new one"

    order = definition("test.deaf", {"a": Step(deaf, timeout=0.5, retry=RETRY)})
    kernel = make_kernel(order, with_redis=with_redis, hang_grace=0.1)
    other = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order)
    assert kernel.drain([QUEUE]) == 1
    left = kernel.get(workflow_id)
    assert left.steps["a"].status is StepStatus.RUNNING
    assert left.claim_token is not None
    TimeShift(other).advance(seconds=16)
    assert run_until_idle(other, [QUEUE]) == 1
    release.set()
    instance = other.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.output == {"a": "from the new one"}
    assert calls == [1, 2]
    assert [each.outcome for each in instance.steps["a"].attempts] == ["lost", "completed"]


def test_a_hung_step_keeps_its_claim_until_its_sibling_is_home(make_kernel: MakeKernel) -> None:
    release, entered = threading.Event(), threading.Event()

    def deaf(ctx: ActivityContext) -> None:
        release.wait(60)

    def sibling(ctx: ActivityContext) -> str:
        entered.set()
        assert not ctx.cancelled.wait(1.0), "the sibling of a hung step is left in peace"
        return "home"

    graph = definition(
        "test.deaf",
        {"a": Step(deaf, timeout=0.05), "b": Step(sibling, timeout=30)},
        depends_on={"a": [], "b": []},
    )
    kernel = make_kernel(graph, hang_grace=0.05)
    workflow_id = start(kernel, graph)
    kernel.drain([QUEUE])
    release.set()
    instance = kernel.get(workflow_id)
    assert entered.is_set()
    assert instance.steps["b"].status is StepStatus.COMPLETED
    assert instance.steps["a"].status is StepStatus.RUNNING


def test_a_lost_claim_cancels_its_call_and_stores_nothing_of_it(make_kernel: MakeKernel) -> None:
    reasons: list[str | None] = []

    def activity(ctx: ActivityContext) -> str:
        assert kernel.supersede(ctx.workflow_id, reason="the object is gone")
        assert ctx.cancelled.wait(20)
        reasons.append(ctx.cancelled.reason)
        return "late"

    order = definition("test.lost", {"a": activity, "b": lambda _: "never"})
    kernel = make_kernel(order, lease=1)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert reasons == ["claim lost"]
    assert instance.status is InstanceStatus.CANCELED
    assert instance.output == {}
    assert instance.error is not None
    assert instance.error.code == "superseded"


def test_a_long_call_keeps_its_claim_by_renewing_it(make_kernel: MakeKernel) -> None:
    taken_over: list[bool] = []

    def activity(ctx: ActivityContext) -> str:
        before = kernel.get(ctx.workflow_id).claimable_time
        while kernel.get(ctx.workflow_id).claimable_time <= before:
            assert not ctx.cancelled.wait(0.05)
        taken_over.append(other.run_once([QUEUE]))
        return "mine"

    order = definition("test.long", {"a": Step(activity, timeout=30)})
    kernel = make_kernel(order, lease=1, with_redis=False)
    other = make_kernel(order, lease=1, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert taken_over == [False]
    assert kernel.get(workflow_id).output == {"a": "mine"}
