"""Chapter 2, failing: retries, failures no retry can cure, and the reliable end."""

from kernel import (
    ActivityContext,
    Definition,
    FinalizerContext,
    NonRetryable,
    OnFailed,
    Plan,
    RetryPolicy,
    Step,
)
from kernel.testing import TimeShift, run_until_idle
from tests.tutorial.conftest import Machine

BAKE = Plan("tutorial.bake", queue="tutorial", steps=["heat", "bake"])


def heat(ctx: ActivityContext) -> int:
    return 200


def test_a_failed_step_is_tried_again_after_its_backoff(machine: Machine) -> None:
    """An exception uses up an attempt; the next one comes after the policy's delay, anywhere."""
    attempts: list[int] = []

    def bake(ctx: ActivityContext) -> str:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError("the oven does not answer")
        return "bread"

    policy = RetryPolicy(max_retry=2, backoff="fixed", initial=60)
    kernel = machine(Definition(BAKE, steps={"heat": Step(heat), "bake": Step(bake, retry=policy)}))
    started = kernel.start_or_resume(BAKE, biz_key="bake:1")
    run_until_idle(kernel, ["tutorial"])
    assert attempts == [1]
    waiting = kernel.why(started.workflow_id)
    assert (waiting.reason, waiting.step) == ("retry_backoff", "bake")

    for _ in range(2):
        TimeShift(kernel).advance(seconds=61)
        run_until_idle(kernel, ["tutorial"])

    assert attempts == [1, 2, 3]
    assert kernel.get(started.workflow_id).output["bake"] == "bread"


def test_a_failure_no_retry_can_cure_ends_in_the_failure_finalizer(machine: Machine) -> None:
    """`NonRetryable` fails at once; the failure finalizer runs before the workflow is failed."""
    told: list[object] = []

    def bake(ctx: ActivityContext) -> str:
        raise NonRetryable("there is no flour", code="no_flour")

    def apologise(ctx: FinalizerContext) -> None:
        told.append((ctx.error, ctx.outputs))

    kernel = machine(
        Definition(
            BAKE,
            steps={"heat": Step(heat), "bake": Step(bake, retry=RetryPolicy(max_retry=9))},
            failure_finalizer=apologise,
        )
    )
    started = kernel.start_or_resume(BAKE, biz_key="bake:2")
    run_until_idle(kernel, ["tutorial"])

    error = {"step": "bake", "code": "no_flour", "message": "there is no flour"}
    assert told == [(error, {"heat": 200})]
    assert kernel.get(started.workflow_id).status == "failed"


def test_a_step_that_may_fail_is_skipped(machine: Machine) -> None:
    """`OnFailed.SKIP` lets the rest go on; what reads the skipped step's output finds None."""

    def smell(ctx: ActivityContext) -> str:
        raise ValueError("stuffed nose")

    def eat(ctx: ActivityContext) -> dict[str, object]:
        return {"smelled": ctx.output("smell")}

    plan = Plan("tutorial.taste", queue="tutorial", steps=["smell", "eat"])
    kernel = machine(
        Definition(plan, steps={"smell": Step(smell, on_failed=OnFailed.SKIP), "eat": Step(eat)})
    )
    started = kernel.start_or_resume(plan, biz_key="taste:1")
    run_until_idle(kernel, ["tutorial"])

    done = kernel.get(started.workflow_id)
    assert done.status == "completed"
    assert done.steps["smell"].status == "skipped"
    assert done.output["eat"] == {"smelled": None}


def test_a_finalizer_that_fails_is_tried_until_it_succeeds(machine: Machine) -> None:
    """The success finalizer is part of the end: not completed before it has returned once."""
    calls: list[int] = []

    def publish(ctx: FinalizerContext) -> None:
        calls.append(ctx.attempt)
        if len(calls) == 1:
            raise ConnectionError("the shop is closed")

    steps = {"heat": Step(heat), "bake": Step(lambda _: "bread")}
    kernel = machine(Definition(BAKE, steps=steps, success_finalizer=publish))
    started = kernel.start_or_resume(BAKE, biz_key="bake:3")
    run_until_idle(kernel, ["tutorial"])
    assert kernel.get(started.workflow_id).status == "running"

    TimeShift(kernel).advance(seconds=3600)
    run_until_idle(kernel, ["tutorial"])

    assert calls == [1, 2]
    assert kernel.get(started.workflow_id).status == "completed"
