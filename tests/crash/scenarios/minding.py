"""The second hand and the look-around killed while they find lost, due and abandoned work.

Guarantees under test: somebody looks without being told (I10), and looking may die anywhere.
"""

import os
from collections.abc import Iterator
from typing import Any, ClassVar

from kernel import ActivityContext, Definition, Plan, Sleep, Step
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage, connected, in_another_process
from tests.crash.world import LEASE_SECONDS, World

MINDED = Plan("crash.minded", queue=QUEUE, steps=["work"])
NAMES = ("lost", "asleep", "abandoned")


class _Minding(Scenario):
    """Three instances nobody is told about: never queued, asleep, and left by a dead holder."""

    entries: ClassVar[Entries] = {
        ("lost", 1, "work"): 1,
        ("asleep", 1, "work"): 2,
        ("abandoned", 1, "work"): 2,
    }
    width = 0

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any] | Sleep:
            stage.ledger.enter(ctx)
            name = ctx.biz_key.rsplit(":", 1)[1]
            if name == "asleep" and ctx.checkpoint is None:
                return Sleep(30, checkpoint={"n": 1})
            if name == "abandoned" and ctx.attempt == 1:
                os._exit(0)
            return {}

        return [Definition(MINDED, steps={"work": Step(work)})]

    def biz_keys(self, world: World) -> list[str]:
        return [world.biz_key(name) for name in NAMES]

    def arrange(self, stage: Stage) -> None:
        assert in_another_process(lambda: self._abandon(stage)) == 0, "the holder outlived its step"
        stage.start(MINDED, "asleep")
        stage.drain()
        self._lose(stage)
        stage.advance(LEASE_SECONDS + 100)

    def check(self, stage: Stage) -> Iterator[str]:
        for key in self.biz_keys(stage.world):
            if (status := stage.find(key).status) != "completed":
                yield f"{key} ended {status}"

    def _abandon(self, stage: Stage) -> int:
        stage.start(MINDED, "abandoned")
        stage.drain()
        return 1

    def _lose(self, stage: Stage) -> None:
        """Register an instance without telling Redis."""
        silent = connected(stage.config(with_redis=False), self.definitions(stage))
        silent.start_or_resume(MINDED, biz_key=stage.world.biz_key("lost"), input={"name": "lost"})


class Tick(_Minding):
    """Timers, leases and bells; the first tick on an empty Redis rebuilds everything."""

    def act(self, stage: Stage) -> None:
        stage.kernel.tick()
        stage.kernel.tick()


class Reconcile(_Minding):
    """Due waits and lost candidates, from MongoDB alone."""

    def act(self, stage: Stage) -> None:
        stage.kernel.reconcile()
