"""A worker for an event and its listeners, in a process of its own: `-m tests.waiting.worker JSON`.

Guarantees that every call is in the ledger before it goes on. Leaves ending it to the test.
"""

import json
import sys
import threading
from typing import Any

from kernel import (
    ActivityContext,
    Definition,
    Kernel,
    KernelError,
    Plan,
    Step,
    WaitForSignal,
    Yield,
    workflow_id_of,
)
from tests.crash.worker import Settings

QUEUE = "crash"
LISTENING = Plan("waiting.listening", queue=QUEUE, steps=["listen"])
FANOUT = Plan("waiting.fanout", queue=QUEUE, steps=["ring"])
EVENT = "event"
PAGE = 100


def listener(number: int) -> str:
    """Return the biz_key of a listener."""
    return f"listener:{number}"


def connect(settings: Settings) -> Kernel:
    """Return a kernel that serves listeners and fan-outs."""

    def listen(ctx: ActivityContext) -> Any:
        if ctx.resume is None:
            return WaitForSignal(EVENT, wait_key=EVENT)
        settings.ledger.enter(ctx)
        return ctx.resume.signal_id

    def ring(ctx: ActivityContext) -> Any:
        begin, count = ctx.checkpoint or 0, ctx.input["listeners"]
        kernel.deliver_signals(
            [
                {
                    "workflow_id": workflow_id_of(listener(number)),
                    "signal_type": EVENT,
                    "wait_key": EVENT,
                    "signal_id": f"{EVENT}:{number}",
                }
                for number in range(begin, min(begin + PAGE, count))
            ]
        )
        return Yield(checkpoint=begin + PAGE) if begin + PAGE < count else {"rung": count}

    kernel = settings.connect()
    kernel.register(Definition(LISTENING, steps={"listen": Step(listen)}))
    kernel.register(Definition(FANOUT, steps={"ring": Step(ring)}))
    return kernel


def serve(settings: Settings) -> None:
    """Drain for ever."""
    kernel = connect(settings)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        try:
            kernel.drain([QUEUE])
        except KernelError as error:
            sys.stdout.write(f"later: {error}\n")
        threading.Event().wait(0.02)


if __name__ == "__main__":
    serve(Settings(**json.loads(sys.argv[1])))
