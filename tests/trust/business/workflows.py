"""Activities that note their coming and going, and the ways in which they misbehave.

A misbehaving one does so on its first attempt only: the second shows who carried on, and when.
"""

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel import ActivityContext, Definition, Plan, RetryPolicy, Sleep, Step
from tests.trust.business import ledger, plans

GATE = "TRUST_GATE"
#: Names a step that this worker's definition of the chain has more than others.
EXTRA_STEP = "TRUST_EXTRA_STEP"

#: A gate stays closed for as long as a soak's outage lasts.
GATE_SECONDS = 600 + float(os.environ.get("BATON_SOAK_OUTAGE", "0"))

_RETRY = RetryPolicy(max_retry=3, backoff="fixed", initial=0.1)


def definitions() -> list[Definition]:
    """Build every definition of these tests."""
    return [
        _chain(),
        Definition(
            plans.GATED, steps={"gate": Step(gate, timeout=GATE_SECONDS), "after": Step(quick)}
        ),
        Definition(
            plans.SLOW, steps={"gate": Step(gate, timeout=GATE_SECONDS), "after": Step(quick)}
        ),
        Definition(plans.DEAF, steps={"hang": Step(deaf, timeout=1, retry=_RETRY)}),
        Definition(plans.REGEX, steps={"hang": Step(regex, timeout=1, retry=_RETRY)}),
        Definition(plans.GREEDY, steps={"hold": Step(greedy, timeout=60), "after": Step(quick)}),
        Definition(plans.SLEEPY, steps={"nap": Step(sleepy)}),
    ]


def _chain() -> Definition:
    plan = plans.CHAIN
    if extra := os.environ.get(EXTRA_STEP):
        plan = Plan(plan.type, queue=plan.queue, steps=[*plan.steps, extra])
    return Definition(plan, steps={name: Step(quick) for name in plan.steps})


@contextmanager
def noted(ctx: ActivityContext) -> Iterator[None]:
    """Note the coming, and the going unless it ends otherwise."""
    ledger.write("enter", ctx.workflow_id, ctx.step, ctx.attempt)
    yield
    ledger.write("leave", ctx.workflow_id, ctx.step, ctx.attempt)


def quick(ctx: ActivityContext) -> dict[str, Any]:
    """Take as long as the input says, in seconds."""
    with noted(ctx):
        threading.Event().wait((ctx.input or {}).get("seconds", 0.0))
    return {"step": ctx.step}


def gate(ctx: ActivityContext) -> dict[str, Any]:
    """Wait until the test opens the gate."""
    with noted(ctx):
        _until(lambda: Path(os.environ[GATE]).exists() or ctx.attempt > 1 or ctx.cancelled.is_set())
    return {}


def deaf(ctx: ActivityContext) -> dict[str, Any]:
    """Never come back, whoever asks."""
    with noted(ctx):
        _until(lambda: ctx.attempt > 1)
    return {}


def regex(ctx: ActivityContext) -> dict[str, Any]:
    """Hold the GIL for ever: no other thread of this process runs again."""
    with noted(ctx):
        if ctx.attempt == 1:
            re.match(r"(a+)+$", "a" * 60 + "b")
    return {}


def greedy(ctx: ActivityContext) -> dict[str, Any]:
    """Hold the GIL for as long as the input says, then come back."""
    with noted(ctx):
        ctypes.PyDLL(None).usleep(int(ctx.input["seconds"] * 1_000_000))
    return {"held": ctx.input["seconds"]}


def sleepy(ctx: ActivityContext) -> dict[str, Any] | Sleep:
    """Sleep once, for as long as the input says."""
    with noted(ctx):
        if ctx.resume is None:
            return Sleep(ctx.input["seconds"])
    return {}


def _until(condition: Callable[[], bool]) -> None:
    never = threading.Event()
    while not condition():
        never.wait(0.02)
