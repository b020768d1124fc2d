"""Permits killed at every command: acquire, defer, hand on, release, of steps and workflows.

Guarantees under test: a limit is never overstepped by living owners, no permit and no place in line
is lost, waiting costs no attempt, and nothing is left behind when all is over (design 2.5).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kernel import ActivityContext, Definition, Plan, Step
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage
from tests.crash.world import World

CALLING = Plan("crash.calling", queue=QUEUE, steps=["call", "again"])
PASSED = Plan("crash.passed", queue=QUEUE, steps=["call"])
CROSSING = Plan(
    "crash.crossing", queue=QUEUE, steps=["left", "right"], depends_on={"left": [], "right": []}
)


class _Limited(Scenario):
    """Some instances on resources of one permit, which a first one holds while the others come."""

    plan: ClassVar[Plan]
    names: ClassVar[tuple[str, ...]] = ("one", "two")
    resources: ClassVar[tuple[str, ...]] = ("psp",)

    def biz_keys(self, world: World) -> list[str]:
        return [world.biz_key(name) for name in self.names]

    def arrange(self, stage: Stage) -> None:
        for name in self._resources(stage):
            stage.kernel.capacity.set_limit(name, max_concurrency=1)
        for name in self.names:
            stage.start(self.plan, name)

    def act(self, stage: Stage) -> None:
        stage.drain()
        stage.kernel.tick()
        stage.drain()

    def look(self, stage: Stage) -> Iterator[str]:
        for name in self._resources(stage):
            status = stage.kernel.capacity.status(name)
            if status.used + status.reserved > 1:
                yield f"{name}: {status.used} hold and {status.reserved} are to hold one permit"

    def check(self, stage: Stage) -> Iterator[str]:
        for name in self._resources(stage):
            status = stage.kernel.capacity.status(name)
            if (status.used, status.waiting) != (0, 0):
                yield f"{name}: {status.used} hold and {status.waiting} wait though all is over"
        for key in self.biz_keys(stage.world):
            instance = stage.find(key)
            if instance.status != "completed":
                yield f"{key} ended {instance.status}"
            if any(step.error or step.failures for step in instance.steps.values()):
                yield f"{key}: waiting counted as a failure"

    def _resources(self, stage: Stage) -> list[str]:
        return [f"{name}:{stage.world.run}" for name in self.resources]

    def _call(self, stage: Stage) -> Any:
        def call(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            if ctx.biz_key == stage.world.biz_key(self.names[0]) and ctx.step == self.plan.steps[0]:
                # Comes while the permit is held: it is put off, and handed on to afterwards.
                stage.kernel.run_once([QUEUE])
            return {"step": ctx.step}

        return call


class Permits(_Limited):
    """Steps in a row on one resource, beside others that want it, for a tenant with a share."""

    plan = CALLING
    entries: ClassVar[Entries] = {
        (name, 1, step): 1 for name in _Limited.names for step in CALLING.steps
    }
    #: The one that holds, and the one that runs inside it.
    width = 2

    def definitions(self, stage: Stage) -> list[Definition]:
        [psp] = self._resources(stage)
        call = self._call(stage)
        steps = {
            "call": Step(call, traffic_resource=psp),
            "again": Step(call, traffic_resource=lambda _: [psp]),
        }
        tenant = f"tenant:{stage.world.run}"
        return [Definition(CALLING, steps=steps, workflow_resources=lambda _: tenant)]


class PassedPermits(_Limited):
    """One step on one resource: whoever comes home passes its permit and its slot to the next."""

    plan = PASSED
    names = ("one", "two", "three")
    entries: ClassVar[Entries] = {(name, 1, "call"): 1 for name in names}
    width = 3

    def definitions(self, stage: Stage) -> list[Definition]:
        [psp] = self._resources(stage)
        return [Definition(PASSED, steps={"call": Step(self._call(stage), traffic_resource=psp)})]


class CrossingPermits(_Limited):
    """Waves whose steps need two resources of one permit each, named crosswise."""

    plan = CROSSING
    resources = ("x", "y")
    entries: ClassVar[Entries] = {
        (name, 1, step): 1 for name in _Limited.names for step in CROSSING.steps
    }
    width = 3

    def definitions(self, stage: Stage) -> list[Definition]:
        x, y = self._resources(stage)
        call = self._call(stage)
        steps = {
            "left": Step(call, traffic_resource=[x, y]),
            "right": Step(call, traffic_resource=[y, x]),
        }
        return [Definition(CROSSING, steps=steps)]
