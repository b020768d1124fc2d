"""An activity that finds its object gone ends the whole workflow, without retry or compensation."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
    WorkflowCanceled,
)
from kernel.definition import OnFailed
from kernel.protocol import beginning, homecoming
from kernel.protocol.coming_home import home_alone
from kernel.protocol.outcomes import Canceled
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start


def cancel(ctx: ActivityContext) -> None:
    try:
        raise WorkflowCanceled("object deleted")
    except Exception as swallowed:
        raise AssertionError("an activity's `except Exception` must not catch it") from swallowed


def test_a_cancel_skips_its_step_and_ends_the_workflow_at_once(make_kernel: MakeKernel) -> None:
    finalized: list[Any] = []
    retry = RetryPolicy(max_retry=5, backoff="none")
    order = definition(
        "test.cancel",
        {"a": Step(cancel, retry=retry), "b": lambda _: "never"},
        failure_finalizer=finalized.append,
        success_finalizer=finalized.append,
    )
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.CANCELED
    assert instance.steps["a"].status is StepStatus.SKIPPED
    assert instance.steps["a"].attempt == 1
    assert instance.steps["b"].attempt == 0
    assert instance.error is not None
    assert (instance.error.code, instance.error.message) == ("workflow_canceled", "object deleted")
    assert instance.claim_token is None
    assert finalized == []
    assert "object deleted" in kernel.why(workflow_id).sentence


def sync_sibling(ctx: ActivityContext) -> str:
    assert ctx.cancelled.wait(20)
    ctx.raise_if_cancelled()
    return "never"


async def async_sibling(ctx: ActivityContext) -> str:
    await asyncio.sleep(20)
    return "never"


def finishing_sibling(ctx: ActivityContext) -> str:
    assert ctx.cancelled.wait(20)
    return "done anyway"


def failing_sibling(ctx: ActivityContext) -> str:
    assert ctx.cancelled.wait(20)
    raise OSError("failed meanwhile")


def sleeping_sibling(ctx: ActivityContext) -> Sleep:
    assert ctx.cancelled.wait(20)
    return Sleep(60)


@pytest.mark.parametrize(
    "sibling",
    [sync_sibling, async_sibling, finishing_sibling, failing_sibling, sleeping_sibling],
)
def test_a_cancel_reaches_its_siblings_and_wins_over_what_they_do(
    make_kernel: MakeKernel, sibling: Callable[[ActivityContext], Any]
) -> None:
    graph = definition(
        "test.cancel", {"a": cancel, "b": Step(sibling, timeout=30)}, depends_on={"a": [], "b": []}
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.CANCELED
    assert instance.waits == ()
    assert StepStatus.WAITING not in {step.status for step in instance.steps.values()}


def test_a_failing_sibling_cancels_nobody(make_kernel: MakeKernel) -> None:
    failed = threading.Event()

    def fails(ctx: ActivityContext) -> None:
        failed.set()
        raise OSError("down")

    def goes_on(ctx: ActivityContext) -> str:
        assert failed.wait(20)
        assert not ctx.cancelled.wait(0.3)
        return "done"

    graph = definition("test.cancel", {"a": fails, "b": goes_on}, depends_on={"a": [], "b": []})
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.output == {"b": "done"}


def test_a_death_between_a_cancel_and_its_settling_still_ends_canceled(
    make_kernel: MakeKernel, dead_worker: DeadWorker
) -> None:
    entered: list[str] = []
    graph = definition(
        "test.cancel",
        {"a": lambda ctx: entered.append(ctx.step), "b": lambda ctx: entered.append(ctx.step)},
        depends_on={"a": [], "b": []},
        failure_finalizer=lambda _: entered.append("finalizer"),
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    store = dead_worker.store(kernel)
    claimed = store.claim(
        workflow_id,
        fingerprints=[graph.plan.fingerprint],
        token="t",
        owner="elsewhere",
        lease_ms=15_000,
    )
    assert claimed is not None
    assert store.commit(beginning.begin(claimed.instance, ("a", "b")))
    begun = kernel.get(workflow_id)
    changes = homecoming.come_home(
        begun, "a", Canceled("gone"), retry=RetryPolicy(), on_failed=OnFailed.STOP, jitter=0
    )
    assert store.commit(home_alone(begun, "a", changes).commit)
    TimeShift(kernel).advance(seconds=16)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.CANCELED
    assert entered == []
