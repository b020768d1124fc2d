"""What permits cost: throughput with and without them, one acquire, and the hand-on of a long line.

Guarantees that limits on and off are measured in turns on the same servers, so that a neighbour
slows both. Leaves proofs of the limits themselves to `tests/capacity_proof`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pymongo import monitoring

from bench.children import measure_together
from bench.crowd import clone_waiting
from bench.figure import Figure, median, percentile, spread
from bench.site import QUEUE, Site, connect, fresh_database, mongo
from bench.workflows import LIMITED, PERMIT, RESOURCE, THREE, definitions
from kernel import Kernel, Plan, workflow_id_of

PROCESSES: Final = 2
#: More than can ever be in flight here: every acquire is answered with a permit.
_ROOMY: Final = 1_000
_COLLECTION: Final = "workflow_capacity"
FEW: Final = 1_000
#: Claims side by side in one process, whose permits travel together.
GROUP: Final = 16


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Measure throughput, one acquire, and lines of a thousand and of ten thousand."""
    return [
        *(
            _throughput(site, *((200, 3) if quick else (1000, 5)), slots=slots, aim=aim)
            for slots, aim in ((1, 0.6), (GROUP, 0.8))
        ),
        _acquire(site, 100 if quick else 500),
        *_line(site, waiting=2_000 if quick else 10_000, turns=50 if quick else 200),
    ]


def _throughput(site: Site, workflows: int, repeats: int, *, slots: int, aim: float) -> Figure:
    on, off = [], []
    for _ in range(repeats):
        off.append(_drain(site, THREE, workflows, slots))
        on.append(_drain(site, LIMITED, workflows, slots))
    return Figure(
        name=f"3 steps, one with a permit, 2 processes of {slots}",
        value=median(on),
        unit="/s",
        raw_name="the same without a permit",
        raw=median(off),
        aim=f"ratio >= {aim}",
        note=f"with {spread(on)}; without {spread(off)}",
    )


def _drain(site: Site, plan: Plan, workflows: int, slots: int) -> float:
    with fresh_database(site) as environment:
        kernel = connect(environment)
        kernel.ensure_schema()
        kernel.register_plan(plan)
        kernel.capacity.set_limit(RESOURCE, max_concurrency=_ROOMY, reason="bench", by="bench")
        for number in range(workflows):
            kernel.start_or_resume(plan, biz_key=f"{plan.type}:{number}", input={"number": number})
        kernel.close()
        answers, seconds = measure_together(
            "drain", str(slots), processes=PROCESSES, environment=environment
        )
        if (ran := sum(answer["ran"] for answer in answers)) != workflows:
            raise RuntimeError(f"{ran} of {workflows} workflows ran")
        return workflows / seconds


class _Commands(monitoring.CommandListener):
    """Times the writes on resource documents of the clients made with it."""

    def __init__(self) -> None:
        self.writes_ms: list[float] = []
        self._begun: set[int] = set()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command.get(event.command_name) == _COLLECTION and event.command_name in {
            "update",
            "findAndModify",
        }:
            self._begun.add(event.request_id)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.request_id in self._begun:
            self.writes_ms.append(event.duration_micros / 1000)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """A failed measurement shows elsewhere."""


def _acquire(site: Site, workflows: int) -> Figure:
    """Time acquires and releases as the engine makes them, beside a bare write of the same kind."""
    with fresh_database(site) as environment, mongo(environment) as client:
        commands = _Commands()
        monitoring.register(commands)
        with _serving(environment) as kernel:
            kernel.capacity.set_limit(RESOURCE, max_concurrency=_ROOMY, reason="bench", by="bench")
            for number in range(workflows):
                kernel.start_or_resume(PERMIT, biz_key=f"permit:{number}", input={})
            commands.writes_ms.clear()
            ran = kernel.drain([QUEUE], max_claims=workflows)
            timed = list(commands.writes_ms)
        # Each asks for a permit; giving it back travels with whoever asks next.
        if ran != workflows or len(timed) < workflows:
            raise RuntimeError(f"{ran} ran, {len(timed)} writes on {_COLLECTION} were seen")
        bare = _bare_updates(client[environment["BATON_DATABASE"]]["bare"], len(timed))
        return Figure(
            name="write on a resource that gives and takes back permits, p50",
            value=percentile(timed, 50),
            unit="ms",
            raw_name="update_one, majority + journal, p50",
            raw=percentile(bare, 50),
            note=f"p99 {percentile(timed, 99):.2f} ms; {len(timed) / workflows:.1f} a workflow",
        )


def _bare_updates(collection: Any, count: int) -> list[float]:
    collection.insert_one({"_id": "one", "used": 0})
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        collection.update_one({"_id": "one"}, {"$inc": {"used": 1}})
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What one turn of a line costs: milliseconds, and documents examined to find who is next."""

    ms: float
    examined: int


def _line(site: Site, *, waiting: int, turns: int) -> list[Figure]:
    with fresh_database(site, lease=60) as environment, mongo(environment) as client:
        instances = client[environment["BATON_DATABASE"]]["workflow_instances"]
        with _serving(environment) as kernel:
            like = _first_in_line(kernel)
            clone_waiting(instances, like, (_name(n) for n in range(1, FEW)), reason="paused")
            few = _turns(kernel, client[environment["BATON_DATABASE"]], turns)
            clone_waiting(
                instances, _still_waiting(instances), (_name(n) for n in range(FEW, waiting)),
                reason="paused",
            )  # fmt: skip
            many = _turns(kernel, client[environment["BATON_DATABASE"]], turns)
    return [
        Figure(
            name=f"a turn of a line of {waiting:,}: hand on, claim, run, give back",
            value=many.ms,
            unit="ms",
            raw_name=f"beside a line of {FEW:,}",
            raw=few.ms,
            aim="flat",
        ),
        Figure(
            name=f"documents examined to find the next of {waiting:,}, at most",
            value=many.examined,
            unit="",
            raw_name=f"beside a line of {FEW:,}",
            raw=few.examined,
            aim="flat",
        ),
    ]


def _first_in_line(kernel: Kernel) -> str:
    capacity = kernel.capacity
    capacity.set_limit(RESOURCE, max_concurrency=1, reason="bench", by="bench")
    capacity.pause(RESOURCE, reason="bench", by="bench")
    kernel.start_or_resume(PERMIT, biz_key=_name(0), input={})
    kernel.drain([QUEUE])
    return workflow_id_of(_name(0))


def _still_waiting(instances: Any) -> str:
    found = instances.find_one({"blocked_on.reason": "paused", "blocked_on.resources": RESOURCE})
    if found is None:
        raise RuntimeError("nobody is left in the line")
    return str(found["workflow_id"])


def _turns(kernel: Kernel, database: Any, turns: int) -> _Turn:
    """Let the line move; nobody but this process works on it."""
    capacity = kernel.capacity
    capacity.resume(RESOURCE, reason="bench", by="bench")
    database.command("profile", 2)
    ran, begun = 0, time.perf_counter()
    while ran < turns and time.perf_counter() - begun < 120:
        ran += kernel.drain([QUEUE], max_claims=turns - ran)
        if ran < turns:
            kernel.tick()
    seconds = time.perf_counter() - begun
    database.command("profile", 0)
    capacity.pause(RESOURCE, reason="bench", by="bench")
    looks = {"ns": f"{database.name}.workflow_instances", "docsExamined": {"$exists": True}}
    examined = max(
        (
            row["docsExamined"]
            for row in database["system.profile"].find(looks)
            if "blocked_on.resources" in str(row.get("command", ""))
        ),
        default=0,
    )
    database["system.profile"].drop()
    if ran < turns:
        raise RuntimeError(f"the line moved {ran} times instead of {turns}")
    return _Turn(ms=seconds * 1000 / ran, examined=examined)


@contextmanager
def _serving(environment: Mapping[str, str]) -> Iterator[Kernel]:
    kernel = connect(environment)
    kernel.ensure_schema()
    for definition in definitions():
        kernel.register(definition)
    try:
        yield kernel
    finally:
        kernel.close()


def _name(number: int) -> str:
    return f"in-line:{number}"
