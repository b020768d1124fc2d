"""A step that kills its process every time, in a wave with steps that do no harm.

Guarantees under test: after too many deaths in a row it is given up as `worker_lost`, and the steps
that merely ran beside it complete (design 1.5, recoveries).
"""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from kernel import ActivityContext, Definition, FinalizerContext, Plan, Step
from tests.crash.scenarios.scenario import Scenario
from tests.crash.stage import QUEUE, Stage, in_another_process
from tests.crash.world import LEASE_SECONDS
from tests.kit.waiting import eventually

POISONED = Plan(
    "crash.poisoned",
    queue=QUEUE,
    steps=["left", "poison", "right", "join"],
    depends_on={"left": [], "poison": [], "right": [], "join": ["left", "poison", "right"]},
)
#: Entries of the poison: once, and once more for each of the recoveries a step has.
POISON_ENTRIES = 6
#: Entries of a step beside it: two deaths are needed to tell that something is wrong, then it runs
#: alone.
INNOCENT_ENTRIES = 3
_WORKERS_MAX = 20
_NOT_ENDED = 3


class Poison(Scenario):
    """Workers die one after the other until the poison is found."""

    entries = None

    def definitions(self, stage: Stage) -> list[Definition]:
        ledger = stage.ledger

        def innocent(ctx: ActivityContext) -> dict[str, Any]:
            ledger.enter(ctx)
            if ctx.attempt == 1:
                threading.Event().wait()
            return {"attempt": ctx.attempt}

        def poison(ctx: ActivityContext) -> dict[str, Any]:
            ledger.enter(ctx)
            if ctx.attempt == 1:
                eventually(lambda: ledger.entered("left") and ledger.entered("right"))
            os.kill(os.getpid(), signal.SIGKILL)
            return {}

        def give_up(ctx: FinalizerContext) -> None:
            ledger.enter_finalizer(ctx)
            assert ctx.error is not None
            assert ctx.error["code"] == "worker_lost"

        steps = {name: Step(poison if name == "poison" else innocent) for name in POISONED.steps}
        return [Definition(POISONED, steps=steps, failure_finalizer=give_up)]

    def arrange(self, stage: Stage) -> None:
        assert in_another_process(lambda: self._start(stage)) == 0

    def act(self, stage: Stage) -> None:
        for _ in range(_WORKERS_MAX):
            stage.offset_ms += 1000 * (LEASE_SECONDS + 100)
            code = in_another_process(lambda: self._one_worker(stage))
            if code == 0:
                return
            assert code in (_NOT_ENDED, -signal.SIGKILL), code

    def check(self, stage: Stage) -> Iterator[str]:
        instance = stage.find(stage.world.biz_key())
        error = instance.error
        if instance.status != "failed" or error is None or error.code != "worker_lost":
            yield f"ended {instance.status} with {error}"
        elif error.step != "poison":
            yield f"blames {error.step}"
        done = sorted(n for n, step in instance.steps.items() if step.status == "completed")
        if done != ["left", "right"]:
            yield f"completed are {done}"
        entered = {name: stage.ledger.entered(name) for name in (*POISONED.steps, "finalizer")}
        if entered["poison"] != POISON_ENTRIES:
            yield f"the poison was entered {entered['poison']} times"
        if max(entered["left"], entered["right"]) > INNOCENT_ENTRIES:
            yield f"innocents were entered again and again: {entered}"
        if (entered["join"], entered["finalizer"]) != (0, 1):
            yield f"the end was {entered}"

    def _start(self, stage: Stage) -> int:
        return 0 if stage.start(POISONED).activated else 1

    def _one_worker(self, stage: Stage) -> int:
        stage.kernel.tick()
        stage.kernel.reconcile()
        stage.drain()
        return 0 if stage.find(stage.world.biz_key()).status.is_terminal else _NOT_ENDED
