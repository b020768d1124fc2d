"""A claim killed at every command: a linear plan with a finalizer, the same without Redis, a DAG.

Guarantees under test: completed steps are never entered again (I5), the stored facts alone
determine the next step (I10), hints are never needed (I3).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kernel import ActivityContext, Definition, FinalizerContext, Plan, Step
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage

LINEAR = Plan("crash.linear", queue=QUEUE, steps=["a", "b", "c"])
DAG = Plan(
    "crash.dag",
    queue=QUEUE,
    steps=["root", "left", "right", "join"],
    depends_on={"root": [], "left": ["root"], "right": ["root"], "join": ["left", "right"]},
)


class Linear(Scenario):
    """Three steps in a row, and a success finalizer."""

    entries: ClassVar[Entries] = {("one", 1, step): 1 for step in ("a", "b", "c", "finalizer")}

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            before = {"a": None, "b": "a", "c": "b"}[ctx.step]
            path = ctx.output(before)["path"] if before else ""
            return {"path": path + ctx.step}

        def settle(ctx: FinalizerContext) -> None:
            stage.ledger.enter_finalizer(ctx)
            assert ctx.outputs["c"] == {"path": "abc"}

        steps = {name: Step(work) for name in LINEAR.steps}
        return [Definition(LINEAR, steps=steps, success_finalizer=settle)]

    def arrange(self, stage: Stage) -> None:
        stage.start(LINEAR)

    def act(self, stage: Stage) -> None:
        stage.drain()

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        if instance.status != "completed":
            yield f"ended {instance.status}"
        if instance.output.get("c") != {"path": "abc"}:
            yield f"result is {instance.output.get('c')}"


class LinearWithoutRedis(Linear):
    """The same from MongoDB alone."""

    with_redis = False


class Wave(Scenario):
    """A DAG whose two middle steps run in parallel."""

    entries: ClassVar[Entries] = {("one", 1, step): 1 for step in DAG.steps}
    width = 2

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {"step": ctx.step}

        def join(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {"joined": [ctx.output("left")["step"], ctx.output("right")["step"]]}

        steps = {name: Step(join if name == "join" else work) for name in DAG.steps}
        return [Definition(DAG, steps=steps)]

    def arrange(self, stage: Stage) -> None:
        stage.start(DAG)

    def act(self, stage: Stage) -> None:
        stage.drain()

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        if instance.output.get("join") != {"joined": ["left", "right"]}:
            yield f"ended {instance.status} with {instance.output.get('join')}"
