"""A wave is closed: each step comes home for itself, the last one settles the instance."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    InstanceStatus,
    OnFailed,
    Reason,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
    WorkflowCanceled,
    Yield,
)
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

SIBLINGS: dict[str, list[str]] = {"a": [], "b": []}


def raises(error: BaseException) -> Callable[[], Any]:
    def outcome() -> Any:
        raise error

    return outcome


#: What the first one home does, its step's status meanwhile, and the instance's status after all.
FIRST_HOME: dict[str, tuple[Callable[[], Any], Step, StepStatus, InstanceStatus]] = {
    "fails": (
        raises(OSError("down")),
        Step(print),
        StepStatus.FAILED,
        InstanceStatus.FAILED,
    ),
    "retries": (
        raises(OSError("down")),
        Step(print, retry=RetryPolicy(max_retry=1, backoff="fixed", initial=60)),
        StepStatus.PENDING,
        InstanceStatus.RUNNING,
    ),
    "cancels": (
        raises(WorkflowCanceled("gone")),
        Step(print),
        StepStatus.SKIPPED,
        InstanceStatus.CANCELED,
    ),
    "is skipped": (
        raises(OSError("down")),
        Step(print, on_failed=OnFailed.SKIP),
        StepStatus.SKIPPED,
        InstanceStatus.COMPLETED,
    ),
    "sleeps": (lambda: Sleep(60), Step(print), StepStatus.WAITING, InstanceStatus.WAITING),
    "completes": (lambda: "a", Step(print), StepStatus.COMPLETED, InstanceStatus.COMPLETED),
}


@pytest.mark.parametrize("how", FIRST_HOME)
def test_the_first_one_home_writes_only_its_own_step(make_kernel: MakeKernel, how: str) -> None:
    outcome, policy, status, after = FIRST_HOME[how]
    entered, go_on = threading.Barrier(2), threading.Event()
    calls: list[str] = []

    def first(ctx: ActivityContext) -> Any:
        calls.append("a")
        entered.wait(20)
        return outcome()

    def second(ctx: ActivityContext) -> str:
        calls.append("b")
        entered.wait(20)
        assert go_on.wait(20)
        return "b"

    graph = definition(
        "test.wave",
        {
            "a": Step(first, retry=policy.retry, on_failed=policy.on_failed),
            "b": Step(second, timeout=30),
        },
        depends_on=SIBLINGS,
    )
    kernel, other = make_kernel(graph), make_kernel(graph)
    workflow_id = start(kernel, graph)
    worker = threading.Thread(target=kernel.drain, args=([QUEUE],))
    worker.start()
    eventually(
        lambda: (
            (seen := kernel.get(workflow_id).steps)["a"].status is status
            and seen["b"].status is StepStatus.RUNNING
        )
    )
    between = kernel.get(workflow_id)
    assert between.status is InstanceStatus.RUNNING
    assert between.claim_token is not None, "the claim stays under the sibling"
    other.reconcile()
    assert other.drain([QUEUE]) == 0
    go_on.set()
    worker.join(30)
    instance = kernel.get(workflow_id)
    assert instance.status is after
    assert instance.output["b"] == "b"
    assert calls.count("b") == 1
    assert instance.steps["b"].attempt == 1


@pytest.mark.parametrize("with_redis", [True, False])
def test_the_backoff_of_one_step_is_not_cut_short_by_another(
    make_kernel: MakeKernel, with_redis: bool
) -> None:
    calls: list[str] = []

    def flaky(ctx: ActivityContext) -> str:
        calls.append(ctx.step)
        if ctx.attempt == 1:
            raise OSError("down")
        return "late"

    def restless(ctx: ActivityContext) -> Any:
        calls.append(ctx.step)
        return Sleep(10, checkpoint=(ctx.checkpoint or 0) + 1) if ctx.checkpoint != 3 else "done"

    retry = RetryPolicy(max_retry=1, backoff="fixed", initial=100)
    graph = definition(
        "test.wave", {"a": Step(flaky, retry=retry), "b": restless}, depends_on=SIBLINGS
    )
    kernel = make_kernel(graph, with_redis=with_redis)
    workflow_id = start(kernel, graph)
    for _ in range(9):
        run_until_idle(kernel, [QUEUE])
        TimeShift(kernel).advance(seconds=10.5)
    assert calls.count("a") == 1
    assert calls.count("b") == 4
    why = kernel.why(workflow_id)
    assert (why.reason, why.step) == (Reason.RETRY_BACKOFF, "a")
    TimeShift(kernel).advance(seconds=10)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "late", "b": "done"}


def test_a_yielding_step_runs_again_beside_what_its_sibling_made_ready(
    make_kernel: MakeKernel,
) -> None:
    calls: list[str] = []

    def polite(ctx: ActivityContext) -> Any:
        calls.append(ctx.step)
        return Yield(checkpoint=1) if ctx.checkpoint is None else "done"

    def plain(ctx: ActivityContext) -> str:
        calls.append(ctx.step)
        return ctx.step

    graph = definition(
        "test.wave",
        {"a": polite, "b": plain, "c": plain},
        depends_on={"a": [], "b": [], "c": ["b"]},
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done", "b": "b", "c": "c"}
    assert sorted(calls) == ["a", "a", "b", "c"]


def test_a_wide_wave_comes_home_without_losing_anybody(make_kernel: MakeKernel) -> None:
    names = [f"s{i}" for i in range(24)]
    calls: list[str] = []

    def work(ctx: ActivityContext) -> str:
        calls.append(ctx.step)
        return ctx.step

    graph = definition(
        "test.wide",
        dict.fromkeys(names, work) | {"join": lambda ctx: [ctx.output(n) for n in names]},
        depends_on={name: [] for name in names} | {"join": names},
    )
    kernel = make_kernel(graph)
    workflow_id = start(kernel, graph)
    assert kernel.drain([QUEUE]) == 1
    instance = kernel.get(workflow_id)
    assert instance.output["join"] == names
    assert sorted(calls) == sorted(names)


def test_many_workers_never_start_a_step_twice_at_once(make_kernel: MakeKernel) -> None:
    running: dict[str, int] = {}
    doubled: list[str] = []
    lock = threading.Lock()

    def work(ctx: ActivityContext) -> Any:
        key = f"{ctx.biz_key}/{ctx.step}"
        with lock:
            running[key] = running.get(key, 0) + 1
            if running[key] > 1:
                doubled.append(key)
        ctx.cancelled.wait(0.005)
        with lock:
            running[key] -= 1
        return Yield(checkpoint=1) if ctx.checkpoint is None else ctx.step

    graph = definition(
        "test.busy",
        dict.fromkeys("abcd", work),
        depends_on={"a": [], "b": [], "c": ["a"], "d": ["b", "c"]},
    )
    kernels = [make_kernel(graph) for _ in range(3)]
    ids = [start(kernels[0], graph, biz_key=f"k{n}") for n in range(8)]
    workers = [
        threading.Thread(target=run_until_idle, args=(kernel, [QUEUE])) for kernel in kernels
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    run_until_idle(kernels[0], [QUEUE])
    assert doubled == []
    for workflow_id in ids:
        instance = kernels[0].get(workflow_id)
        assert instance.status is InstanceStatus.COMPLETED
        assert {step.attempt for step in instance.steps.values()} == {1}
