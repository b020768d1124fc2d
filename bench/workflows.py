"""The workflows that are measured; a Celery worker finds them here like those of any app."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis

from bench.site import QUEUE
from kernel import ActivityContext, Definition, Plan, Sleep, Step, WaitForSignal, Yield

#: Three steps that do nothing: what remains is Baton.
THREE = Plan("bench.three", queue=QUEUE, steps=["one", "two", "three"])
#: The same with a permit for the middle step, and one step that is nothing but its permit.
LIMITED = Plan("bench.limited", queue=QUEUE, steps=["one", "two", "three"])
PERMIT = Plan("bench.permit", queue=QUEUE, steps=["two"])
RESOURCE = "bench"
#: Waits for longer than any run lasts.
WAITING = Plan("bench.waiting", queue=QUEUE, steps=["wait"])
#: Waits for an event, and the workflow that tells everybody of it, a page at a time.
LISTENING = Plan("bench.listening", queue=QUEUE, steps=["listen"])
FANOUT = Plan("bench.fanout", queue=QUEUE, steps=["ring"])
_PAGE = 500
#: Says who entered it, and never ends by itself the first time.
HOLDING = Plan("bench.holding", queue=QUEUE, steps=["prepare", "hold"])


def stamp(ctx: ActivityContext) -> dict[str, int]:
    """Give the moment this line ran; all processes of a machine share this clock."""
    entered_ns = time.monotonic_ns()
    return {"entered_ns": entered_ns, "attempt": ctx.attempt}


def wait(ctx: ActivityContext) -> Sleep:
    """Sleep for a day with a checkpoint like that of a submitted task."""
    return Sleep(86_400, checkpoint={"task": ctx.idempotency_key})


def hold(ctx: ActivityContext) -> dict[str, Any]:
    """Report the entry; in the first attempt stay until somebody ends this process."""
    entered_ns = time.monotonic_ns()
    with redis.Redis.from_url(os.environ["BATON_REDIS_URL"]) as client:
        client.rpush(entries_key(ctx.biz_key), f"{os.getpid()}:{entered_ns}")
    if ctx.attempt == 1:
        ctx.cancelled.wait(120)
        ctx.raise_if_cancelled()
    return {"attempt": ctx.attempt}


def listen(ctx: ActivityContext) -> Any:
    """Wait for the event, and tell what has woken it."""
    if ctx.resume is None:
        return WaitForSignal("event", wait_key="event")
    return ctx.resume.signal_id


def ring(ctx: ActivityContext) -> Any:
    """Deliver one page of signals with stable ids, then let others go first."""
    begin, count = ctx.checkpoint or 0, ctx.input["listeners"]
    ctx.ports(range(begin, min(begin + _PAGE, count)))
    return Yield(checkpoint=begin + _PAGE) if begin + _PAGE < count else {"rung": count}


def listener(number: int) -> str:
    """Name a listener by its number."""
    return f"listener:{number}"


def entries_key(biz_key: str) -> str:
    """Name the Redis list that tells of a workflow's entries into `hold`."""
    return f"{os.environ['BATON_KEY_PREFIX']}:entries:{biz_key}"


def definitions(tell: Callable[[Sequence[int]], object] | None = None) -> list[Definition]:
    """Build every measured definition; `tell` delivers the event to a page of listeners."""
    return [
        Definition(THREE, steps={name: Step(stamp) for name in THREE.steps}),
        Definition(
            LIMITED,
            steps={
                "one": Step(stamp),
                "two": Step(stamp, traffic_resource=RESOURCE),
                "three": Step(stamp),
            },
        ),
        Definition(PERMIT, steps={"two": Step(stamp, traffic_resource=RESOURCE)}),
        Definition(WAITING, steps={"wait": Step(wait)}),
        Definition(LISTENING, steps={"listen": Step(listen)}),
        Definition(FANOUT, steps={"ring": Step(ring, timeout=300)}, ports=tell),
        Definition(HOLDING, steps={"prepare": Step(stamp), "hold": Step(hold, timeout=300)}),
    ]
