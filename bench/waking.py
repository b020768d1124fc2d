"""One event wakes a great many waiting workflows, and what they cost while they wait.

Guarantees figures from stored facts: every workflow woken, once each, or no figure at all; how long
the deliveries took is what the fan-out's own attempts say. Leaves the size to `BATON_BENCH_WAITING`
(100,000 by default, 2,000 with --quick), and how many claims a worker runs side by side to
`BATON_BENCH_SLOTS` (16).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pymongo import monitoring

from bench.children import measure_together
from bench.crowd import clone_waiting
from bench.figure import Figure, percentile
from bench.site import QUEUE, Site, connect, fresh_database, mongo
from bench.workflows import FANOUT, LISTENING, THREE, definitions, listener
from kernel import Kernel, KernelConfig, workflow_id_of

PROCESSES: Final = 2
FEW: Final = 1_000
_CLAIMS: Final = 200
_MIB: Final = 2**20
_RAW: Final = "update_one, majority + journal, 1 thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What claims and look-arounds cost beside some number of waiting workflows."""

    claim_ms: float
    examined: int
    reconcile_ms: float


class _Claims(monitoring.CommandListener):
    """Times the claims of the kernels made with it."""

    def __init__(self) -> None:
        self.claims_ms: list[float] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Answers are timed by the driver."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.command_name == "findAndModify":
            self.claims_ms.append(event.duration_micros / 1000)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """A failed measurement shows elsewhere."""


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Let workflows wait, look at what they cost, and wake them all with one event."""
    waiting = int(os.environ.get("BATON_BENCH_WAITING") or (2_000 if quick else 100_000))
    with fresh_database(site, lease=60) as environment, mongo(environment) as client:
        instances = client[environment["BATON_DATABASE"]]["workflow_instances"]
        _first_listener(environment)
        like = workflow_id_of(listener(0))
        clone_waiting(instances, like, (listener(n) for n in range(1, FEW)))
        few = _cost(environment, client)
        clone_waiting(instances, like, (listener(n) for n in range(FEW, waiting)))
        many = _cost(environment, client)
        seconds, answers = _wake(environment, waiting)
        raw = _bare_writes(client, environment, seconds=1)
        _verify(client[environment["BATON_DATABASE"]], waiting)
        delivering = _delivering(instances)
    return [
        _delivered(waiting, delivering, raw),
        _rate(waiting, seconds, raw),
        *_memory(answers),
        *_costs(waiting, few, many),
    ]


def _first_listener(environment: Mapping[str, str]) -> None:
    kernel = _serving(connect(environment))
    kernel.ensure_schema()
    kernel.start_or_resume(LISTENING, biz_key=listener(0), input={})
    kernel.drain([QUEUE])
    kernel.close()


def _serving(kernel: Kernel) -> Kernel:
    for definition in definitions():
        kernel.register(definition)
    return kernel


def _cost(environment: Mapping[str, str], client: Any) -> Cost:
    """Claim from MongoDB alone, the way that has to find its candidate among all instances."""
    database = client[environment["BATON_DATABASE"]]
    listener_of_claims = _Claims()
    monitoring.register(listener_of_claims)
    kernel = _serving(
        Kernel.connect(
            KernelConfig(
                mongo_url=environment["BATON_MONGO_URL"],
                database=environment["BATON_DATABASE"],
                key_prefix=environment["BATON_KEY_PREFIX"],
            )
        )
    )
    for number in range(_CLAIMS):
        kernel.start_or_resume(THREE, biz_key=f"claim:{time.monotonic_ns()}:{number}", input={})
    listener_of_claims.claims_ms.clear()
    database.command("profile", 2, filter={"command.findAndModify": "workflow_instances"})
    kernel.drain([QUEUE])
    database.command("profile", 0)
    claims = list(database["system.profile"].find({"nMatched": 1}, {"docsExamined": 1}))
    examined = max((row["docsExamined"] for row in claims), default=-1)
    database["system.profile"].drop()
    begun = time.perf_counter()
    kernel.reconcile()
    reconcile_ms = (time.perf_counter() - begun) * 1000
    kernel.close()
    return Cost(
        claim_ms=percentile(listener_of_claims.claims_ms, 50),
        examined=examined,
        reconcile_ms=reconcile_ms,
    )


def _wake(environment: Mapping[str, str], waiting: int) -> tuple[float, list[dict[str, Any]]]:
    kernel = connect(environment)
    kernel.register_plan(FANOUT)
    kernel.start_or_resume(FANOUT, biz_key="event", input={"listeners": waiting})
    kernel.close()
    slots = os.environ.get("BATON_BENCH_SLOTS") or "16"
    answers, seconds = measure_together("wake", slots, processes=PROCESSES, environment=environment)
    return seconds, answers


def _bare_writes(client: Any, environment: Mapping[str, str], *, seconds: float) -> float:
    collection = client[environment["BATON_DATABASE"]]["bare"]
    collection.insert_one({"_id": 0})
    done, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        collection.update_one({"_id": 0}, {"$set": {"n": done}})
        done += 1
    return done / passed


def _verify(database: Any, waiting: int) -> None:
    once = {"type": LISTENING.type, "status": "completed", "steps.listen.attempts": {"$size": 2}}
    woken = database["workflow_instances"].count_documents(once)
    matched = database["workflow_signals"].count_documents({"status": "matched"})
    signals = database["workflow_signals"].estimated_document_count()
    if (woken, matched, signals) != (waiting, waiting, waiting):
        raise RuntimeError(
            f"{woken} of {waiting} woken once, {matched} of {signals} signals matched"
        )


def _delivering(instances: Any) -> float:
    """Return the seconds that the fan-out spent in its pages."""
    fanout = instances.find_one({"type": FANOUT.type})
    return float(fanout["steps"]["ring"]["times"]["activity_ms"]) / 1000


def _delivered(waiting: int, seconds: float, raw: float) -> Figure:
    return Figure(
        name="signals delivered while a page is rung, workers busy",
        value=waiting / seconds,
        unit="/s",
        raw_name=_RAW,
        raw=raw,
        aim=">= 1,000/s",
        note=f"{seconds:.1f} s in the fan-out's pages, recorded, woken, laned and marked",
    )


def _rate(waiting: int, seconds: float, raw: float) -> Figure:
    return Figure(
        name="workflows woken by one event, 2 processes",
        value=waiting / seconds,
        unit="/s",
        raw_name=_RAW,
        raw=raw,
        aim=">= 1,000/s",
        note=f"{waiting:,} of {waiting:,} woken, once each, to their end in {seconds:.0f} s",
    )


def _memory(answers: list[dict[str, Any]]) -> list[Figure]:
    worst = max(answers, key=lambda answer: answer["peak"] - answer["first"])
    return [
        Figure(
            name="worker memory while it wakes them, peak",
            value=worst["peak"] / _MIB,
            unit="MiB",
            raw_name="after its first 500 claims",
            raw=worst["first"] / _MIB,
            aim="flat",
            note=(
                f"{worst['before'] / _MIB:.1f} MiB before, {worst['after'] / _MIB:.1f} after;"
                f" claims by process: {' '.join(str(answer['ran']) for answer in answers)}"
            ),
        )
    ]


def _costs(waiting: int, few: Cost, many: Cost) -> list[Figure]:
    beside = f"beside {FEW:,} waiting"
    return [
        Figure(
            name=f"claim without Redis beside {waiting:,} waiting, p50",
            value=many.claim_ms,
            unit="ms",
            raw_name=beside,
            raw=few.claim_ms,
            aim="the same",
            note=f"at most {many.examined} documents examined; {few.examined} {beside}",
        ),
        Figure(
            name=f"reconcile beside {waiting:,} waiting",
            value=many.reconcile_ms,
            unit="ms",
            raw_name=beside,
            raw=few.reconcile_ms,
            aim="bounded",
        ),
    ]
