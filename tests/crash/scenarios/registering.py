"""Killed outside any claim: `start_or_resume`, and `supersede` of a waiting and of a held instance.

Guarantees under test: one biz_key, one instance (I2); a repeated call gets the same answer; what
was superseded commits nothing any more (I4).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kernel import ActivityContext, Definition, Plan, Priority, Sleep, Step
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage
from tests.crash.world import LEASE_SECONDS, World

SINGLE = Plan("crash.single", queue=QUEUE, steps=["only"])
OBSOLETE = Plan("crash.obsolete", queue=QUEUE, steps=["rest", "never"])


class Start(Scenario):
    """Registering, and then once more with a better lane."""

    entries: ClassVar[Entries] = {("one", 1, "only"): 1}

    def definitions(self, stage: Stage) -> list[Definition]:
        def only(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {}

        return [Definition(SINGLE, steps={"only": Step(only)})]

    def arrange(self, stage: Stage) -> None:
        assert stage.kernel.find(biz_key=stage.world.biz_key()) is None

    def act(self, stage: Stage) -> None:
        stage.start(SINGLE)
        self._raise(stage)

    def recover(self, stage: Stage) -> None:
        before = stage.kernel.find(biz_key=stage.world.biz_key())
        again = stage.start(SINGLE)
        assert again.accepted
        assert again.activated == (before is None)
        self._raise(stage)
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        if (instance.status, instance.priority) != ("completed", Priority.REALTIME):
            yield f"ended {instance.status} in lane {instance.priority}"

    def _raise(self, stage: Stage) -> None:
        stage.kernel.start_or_resume(
            SINGLE,
            biz_key=stage.world.biz_key(),
            input={"name": "one"},
            priority=Priority.REALTIME,
        )


class Supersede(Scenario):
    """Ending an obsolete instance that waits, and one that nobody has begun."""

    entries: ClassVar[Entries] = {("waiting", 1, "rest"): 1}

    def definitions(self, stage: Stage) -> list[Definition]:
        def rest(ctx: ActivityContext) -> Sleep:
            stage.ledger.enter(ctx)
            return Sleep(LEASE_SECONDS, checkpoint={})

        def never(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {}

        return [Definition(OBSOLETE, steps={"rest": Step(rest), "never": Step(never)})]

    def biz_keys(self, world: World) -> list[str]:
        return [world.biz_key("waiting"), world.biz_key("new")]

    def arrange(self, stage: Stage) -> None:
        stage.start(OBSOLETE, "waiting")
        stage.drain()
        stage.start(OBSOLETE, "new")

    def act(self, stage: Stage) -> None:
        for key in self.biz_keys(stage.world):
            stage.kernel.supersede(stage.find(key).workflow_id, reason="obsolete")

    def recover(self, stage: Stage) -> None:
        for key in self.biz_keys(stage.world):
            before = stage.find(key)
            changed = stage.kernel.supersede(before.workflow_id, reason="obsolete")
            assert changed == (before.status != "canceled")
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        for key in self.biz_keys(stage.world):
            instance = stage.find(key)
            code = instance.error.code if instance.error else None
            if (instance.status, code) != ("canceled", "superseded"):
                yield f"{key} ended {instance.status} with error {code}"
