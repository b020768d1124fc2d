"""A worker in a process of its own: `python -m tests.crash.worker JSON` (see `Settings`).

Guarantees that it drains and ticks until it is ended, says on stdout what the kernel logs, and
prints `ready` at first and `drained N` after each drain that ran something. Leaves ending it to
the test.
"""

import dataclasses
import json
import logging
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kernel import (
    ActivityContext,
    Definition,
    Kernel,
    KernelConfig,
    KernelError,
    Plan,
    Step,
)
from tests.crash.ledger import Ledger
from tests.crash.skewed import skew_clock

QUEUE = "crash"
HELD = Plan("crash.held", queue=QUEUE, steps=["before", "held", "after"])
HELD_WAVE = Plan(
    "crash.held_wave",
    queue=QUEUE,
    steps=["quick", "held", "join"],
    depends_on={"quick": [], "held": [], "join": ["quick", "held"]},
)
CROWD = Plan("crash.crowd", queue=QUEUE, steps=["one", "two"])
#: Seconds a step of the crowd takes when it is to be met by a server's death.
SLOW_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker is told; seconds where nothing else is said.

    `folder` holds the ledger, and the files for which a held step's attempts wait (`let_go`).
    `clock_offset` puts the worker ahead of the database's clock, `skew` its own clock.
    """

    mongo_url: str
    redis_url: str | None
    database: str
    key_prefix: str
    folder: str
    lease: float
    skew: float = 0.0
    clock_offset: float = 0.0
    slow: bool = False

    @property
    def ledger(self) -> Ledger:
        """The ledger of all workers of the test."""
        return Ledger(Path(self.folder) / "ledger")

    def let_go(self, attempt: int) -> None:
        """Let an attempt of every held step come home."""
        self._go(attempt).touch()

    def may_go(self, attempt: int) -> bool:
        """Tell whether an attempt of a held step may come home."""
        return self._go(attempt).exists()

    def _go(self, attempt: int) -> Path:
        return Path(self.folder) / f"go-{attempt}"

    def connect(self) -> Kernel:
        """Return a kernel that serves every plan here."""
        kernel = Kernel.connect(
            KernelConfig(
                mongo_url=self.mongo_url,
                redis_url=self.redis_url,
                database=self.database,
                key_prefix=self.key_prefix,
                lease=self.lease,
                clock_offset_ms=int(self.clock_offset * 1000),
            )
        )
        for definition in definitions(self):
            kernel.register(definition)
        return kernel


def definitions(settings: Settings) -> list[Definition]:
    """Return what these workers run; a held step ignores its cancellation, as blocked code does."""

    def work(ctx: ActivityContext) -> dict[str, object]:
        settings.ledger.enter(ctx)
        if settings.slow:
            ctx.cancelled.wait(SLOW_SECONDS)
        return {"attempt": ctx.attempt}

    def held(ctx: ActivityContext) -> dict[str, object]:
        settings.ledger.enter(ctx)
        while not settings.may_go(ctx.attempt):
            threading.Event().wait(0.02)
        return {"attempt": ctx.attempt}

    return [
        Definition(
            plan, steps={name: Step(held if name == "held" else work) for name in plan.steps}
        )
        for plan in (HELD, HELD_WAVE, CROWD)
    ]


def serve(settings: Settings) -> None:
    """Drain and tick for ever."""
    kernel = settings.connect()
    _say("ready")
    looked = 0.0
    while True:
        try:
            if ran := kernel.drain([QUEUE], max_claims=20):
                _say(f"drained {ran}")
            if time.monotonic() - looked > 0.2:
                looked = time.monotonic()
                kernel.tick()
        except KernelError as error:
            _say(f"later: {error}")
        threading.Event().wait(0.02)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def arguments(settings: Settings) -> list[str]:
    """Return how to start such a worker."""
    return ["-m", "tests.crash.worker", json.dumps(dataclasses.asdict(settings))]


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(name)s: %(message)s")
    told = Settings(**json.loads(sys.argv[1]))
    if told.skew:
        skew_clock(told.skew)
    serve(told)
