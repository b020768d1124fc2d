"""Ends that are not straight: retries, a failure finalizer and a replay; a sleep and its waking.

Guarantees under test: a replay runs only what was not completed, once (I5, I6); an interrupted
attempt uses up no retry; waiting is no attempt (I7).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kernel import ActivityContext, Definition, FinalizerContext, Plan, RetryPolicy, Sleep, Step
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage

FLAKY = Plan("crash.flaky", queue=QUEUE, steps=["first", "flaky", "last"])
NAPPING = Plan("crash.napping", queue=QUEUE, steps=["before", "nap", "after"])
NAP_SECONDS = 30


class FailAndReplay(Scenario):
    """A step fails twice in round 1, the failure finalizer runs, round 2 completes."""

    entries: ClassVar[Entries] = {
        ("one", 1, "first"): 1,
        ("one", 1, "flaky"): 2,
        ("one", 1, "finalizer"): 1,
        ("one", 2, "flaky"): 1,
        ("one", 2, "last"): 1,
    }

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            if ctx.step == "flaky" and ctx.fencing_token == 1:
                raise RuntimeError("not in this round")
            return {"round": ctx.fencing_token}

        def compensate(ctx: FinalizerContext) -> None:
            stage.ledger.enter_finalizer(ctx)
            assert ctx.error is not None
            assert ctx.error["step"] == "flaky"

        retry = RetryPolicy(max_retry=1, backoff="none")
        steps = {name: Step(work, retry=retry) for name in FLAKY.steps}
        return [Definition(FLAKY, steps=steps, failure_finalizer=compensate)]

    def arrange(self, stage: Stage) -> None:
        stage.start(FLAKY)

    def act(self, stage: Stage) -> None:
        stage.drain()
        stage.start(FLAKY, number=2)
        stage.drain()

    def recover(self, stage: Stage) -> None:
        keys = self.biz_keys(stage.world)
        stage.converge(keys)
        # The client's own retry: a new registration, or the same one once more.
        assert stage.start(FLAKY, number=2).accepted
        stage.converge(keys)

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        if (instance.status, instance.fencing_token) != ("completed", 2):
            yield f"ended {instance.status} in round {instance.fencing_token}"
        if instance.retry_count != 1:
            yield f"was replayed {instance.retry_count} times"
        if instance.output != {"first": {"round": 1}, "flaky": {"round": 2}, "last": {"round": 2}}:
            yield f"outputs are {instance.output}"


class SleepAndResume(Scenario):
    """A step sleeps with a checkpoint, is woken by its timer and goes on."""

    entries: ClassVar[Entries] = {
        ("one", 1, "before"): 1,
        ("one", 1, "nap"): 2,
        ("one", 1, "after"): 1,
    }

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {}

        def nap(ctx: ActivityContext) -> dict[str, Any] | Sleep:
            stage.ledger.enter(ctx)
            if ctx.checkpoint is None:
                return Sleep(NAP_SECONDS, checkpoint={"slept": 1})
            return {"checkpoint": ctx.checkpoint, "resume": ctx.resume and ctx.resume.kind}

        steps = {name: Step(nap if name == "nap" else work) for name in NAPPING.steps}
        return [Definition(NAPPING, steps=steps)]

    def arrange(self, stage: Stage) -> None:
        stage.start(NAPPING)

    def act(self, stage: Stage) -> None:
        stage.drain()
        stage.advance(NAP_SECONDS + 1)
        stage.kernel.tick()
        stage.drain()

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        if instance.status != "completed":
            yield f"ended {instance.status}"
        wanted = {"checkpoint": {"slept": 1}, "resume": "timer"}
        if instance.output.get("nap") != wanted:
            yield f"nap came back with {instance.output.get('nap')}"
