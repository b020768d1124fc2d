"""A workflow runs from its registration to its end: lines, graphs, with and without Redis."""

import threading
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    Kernel,
    NotFound,
    Plan,
    Step,
    StepStatus,
    UnknownWorkflow,
    UsageError,
)
from kernel.testing import run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_line_runs_in_order_and_hands_outputs_on(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    order = definition(
        "test.line",
        {
            "a": lambda ctx: {"n": ctx.input["n"] + 1},
            "b": lambda ctx: {"n": ctx.output("a")["n"] + 1},
            "c": lambda ctx: ctx.output("b"),
        },
    )
    kernel = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order, {"n": 1})
    assert kernel.drain([QUEUE]) == 1
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.output == {"a": {"n": 2}, "b": {"n": 3}, "c": {"n": 3}}
    assert [instance.steps[name].attempt for name in "abc"] == [1, 1, 1]
    assert instance.claim_token is None
    assert instance.finished_at is not None
    assert instance.blocked_on is None
    assert kernel.drain([QUEUE]) == 0


def test_run_once_runs_one_instance_and_says_whether_any_ran(make_kernel: MakeKernel) -> None:
    order = definition("test.line", {"a": lambda _: None})
    kernel = make_kernel(order)
    for n in range(2):
        start(kernel, order, biz_key=f"k{n}")
    assert [kernel.run_once([QUEUE]) for _ in range(3)] == [True, True, False]


def test_a_drain_keeps_to_its_budget(make_kernel: MakeKernel) -> None:
    order = definition("test.line", {"a": lambda _: None})
    kernel = make_kernel(order)
    for n in range(5):
        start(kernel, order, biz_key=f"k{n}")
    assert kernel.drain([QUEUE], max_claims=2) == 2
    assert kernel.drain([QUEUE], max_seconds=0) == 0
    assert kernel.drain([QUEUE]) == 3


@pytest.mark.parametrize("with_redis", [True, False])
def test_steps_of_a_wave_run_at_the_same_time(make_kernel: MakeKernel, with_redis: bool) -> None:
    together = threading.Barrier(2)

    def meet(ctx: ActivityContext) -> str:
        together.wait(20)
        return ctx.step

    graph = definition(
        "test.graph",
        {
            "left": meet,
            "right": meet,
            "join": lambda ctx: [ctx.output("left"), ctx.output("right")],
        },
        depends_on={"left": [], "right": [], "join": ["left", "right"]},
    )
    kernel = make_kernel(graph, with_redis=with_redis)
    workflow_id = start(kernel, graph)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).output["join"] == ["left", "right"]


def test_sync_and_async_activities_see_the_same_context(make_kernel: MakeKernel) -> None:
    seen: list[ActivityContext] = []

    def first(ctx: ActivityContext) -> None:
        seen.append(ctx)

    async def second(ctx: ActivityContext) -> str:
        seen.append(ctx)
        return "async"

    order = definition(
        "test.mixed",
        {"a": first, "b": second},
        ports="the ports",
        prepare_context=lambda ctx: {"tenant": ctx.input["tenant"]},
    )
    kernel = make_kernel(order)
    workflow_id = start(kernel, order, {"tenant": 7}, fencing_token=3)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).output["b"] == "async"
    for ctx, step in zip(seen, "ab", strict=True):
        assert (ctx.workflow_id, ctx.biz_key, ctx.fencing_token) == (workflow_id, "test:1", 3)
        assert (ctx.step, ctx.attempt, ctx.checkpoint, ctx.resume) == (step, 1, None, None)
        assert (ctx.ports, ctx.prepared) == ("the ports", {"tenant": 7})
        assert 0 < ctx.seconds_left <= 60
        assert not ctx.cancelled.is_set()
        ctx.stream.progress(done=1)
    assert seen[0].prepared is seen[1].prepared, "prepared once a claim"
    assert len({ctx.idempotency_key for ctx in seen} | {ctx.operation_key for ctx in seen}) == 4


def test_activities_run_inside_what_the_host_wraps_around_them(make_kernel: MakeKernel) -> None:
    entered: list[str] = []

    class Around:
        def __enter__(self) -> None:
            entered.append(threading.current_thread().name)

        def __exit__(self, *_: object) -> None:
            entered.append("left")

    order = definition("test.line", {"a": lambda _: None}, success_finalizer=lambda _: None)
    kernel = make_kernel(order, around_activity=Around)
    start(kernel, order)
    kernel.drain([QUEUE])
    assert entered == ["baton-activity", "left"] * 2


@pytest.mark.parametrize("how", ["retry_code", "crash in prepare_context"])
def test_a_failing_preparation_is_the_steps_own_failure(make_kernel: MakeKernel, how: str) -> None:
    def prepare(ctx: ActivityContext) -> None:
        raise LookupError(how)

    order = definition("test.line", {"a": lambda _: None}, prepare_context=prepare)
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.error is not None
    assert (instance.error.code, instance.error.message) == ("LookupError", how)


def test_an_unregistered_plan_is_refused_and_nothing_is_written(kernel: Kernel) -> None:
    with pytest.raises(UnknownWorkflow, match="known"):
        kernel.start_or_resume(Plan("test.none", queue=QUEUE, steps=["a"]), biz_key="k")
    assert kernel.find(biz_key="k") is None


def test_a_plan_that_differs_from_the_registered_one_is_refused(kernel: Kernel) -> None:
    kernel.register_plan(Plan("test.line", queue=QUEUE, steps=["a"]))
    with pytest.raises(UnknownWorkflow, match="other steps"):
        kernel.start_or_resume(Plan("test.line", queue=QUEUE, steps=["a", "b"]), biz_key="k")
    assert kernel.find(biz_key="k") is None


def test_a_stopped_process_finishes_its_step_and_hands_the_claim_back(
    make_kernel: MakeKernel,
) -> None:
    order: Any = None

    def stopping(ctx: ActivityContext) -> str:
        first.request_stop()
        return "done"

    order = definition("test.line", {"a": stopping, "b": lambda _: "other"})
    first, second = make_kernel(order), make_kernel(order)
    workflow_id = start(first, order)
    assert first.drain([QUEUE]) == 1
    between = first.get(workflow_id)
    assert between.steps["a"].status is StepStatus.COMPLETED
    assert (between.steps["b"].status, between.steps["b"].attempt) == (StepStatus.PENDING, 0)
    assert between.claim_token is None
    assert not first.run_once([QUEUE]), "a stopped process takes nothing new"
    assert run_until_idle(second, [QUEUE]) == 1
    assert second.get(workflow_id).output == {"a": "done", "b": "other"}


def test_instances_are_listed_in_pages_newest_first(make_kernel: MakeKernel) -> None:
    order = definition("test.line", {"a": lambda _: None})
    other = definition("test.other", {"a": Step(lambda _: None)})
    kernel = make_kernel(order, other)
    started = [kernel.get(start(kernel, order, biz_key=f"k{n}")) for n in range(5)]
    newest = sorted(started, key=lambda i: (i.created_at, i.workflow_id), reverse=True)
    start(kernel, other, biz_key="other")
    page = kernel.list_instances(type="test.line", limit=3)
    rest = kernel.list_instances(type="test.line", after=page[-1].workflow_id)
    assert page + rest == newest
    with pytest.raises(UsageError, match="limit"):
        kernel.list_instances(limit=0)
    with pytest.raises(NotFound):
        kernel.list_instances(after="wf_" + "0" * 32)
    assert kernel.list_instances(status="completed") == []
    assert len(kernel.list_instances(status=["running", "waiting"])) == 6
