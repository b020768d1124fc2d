"""Three-step workflows a second through two Celery workers, beside a loop with no engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.children import celery, measure_together, worker
from bench.figure import Figure, median, spread
from bench.site import Site, connect, fresh_database, mongo
from bench.statements import INSTANCES, record
from bench.workflows import THREE
from kernel import StartItem

PROCESSES = 2
#: Slots of a worker child, and what the engine is to reach with them.
SLOTS = {1: ">= 0.55; aim 250/s", 16: ">= 0.55; aim 1,000/s"}
_QUEUE = THREE.queue
#: Of the workflows in order of their end, those of the first and last part are left out: while
#: they ended, not both workers were at work.
_RAMP = 0.1
_PAGE = 500


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Let two workers with one child each drain a backlog, then send the same without them."""
    repeats = 3 if quick else 5
    figures = []
    for slots, aim in SLOTS.items():
        workflows = (300 if quick else 1000) * (1 if slots == 1 else 3)
        engine, bare, steps = [], [], []
        for _ in range(repeats):
            engine.append(_drain(site, workflows, slots))
            rate, writes = _bare(site, workflows, slots)
            bare.append(rate)
            steps.append(1000 * PROCESSES * (1 / engine[-1] - 1 / rate) / len(THREE.steps))
        figures.append(
            Figure(
                name=f"3-step workflows, 2 Celery workers, {slots} slots",
                value=median(engine),
                unit="/s",
                raw_name=f"its {writes} statements without an engine, groups of {slots}",
                raw=median(bare),
                aim=aim,
                note=f"{spread(engine)}; bare {spread(bare)}; engine a step {median(steps):.2f} ms",
            )
        )
    return figures


def _drain(site: Site, workflows: int, slots: int) -> float:
    """Return the workflows a second that ended while both workers were at work."""
    with fresh_database(site) as environment:
        environment["BATON_SLOTS_PER_CHILD"] = str(slots)
        publish(environment, workflows)
        workers = [worker(f"bench{n}", _QUEUE, concurrency=1) for n in range(PROCESSES)]
        with celery(*workers, environment=environment), mongo(environment) as client:
            instances = client[environment["BATON_DATABASE"]][INSTANCES]
            _await_end(instances, workflows)
            ends = sorted(row["finished_at"] for row in instances.find({}, {"finished_at": 1}))
    return _rate(ends)


def publish(environment: Mapping[str, str], workflows: int) -> None:
    """Register a backlog before anybody works on it."""
    kernel = connect(environment)
    kernel.ensure_schema()
    kernel.register_plan(THREE)
    for start in range(0, workflows, _PAGE):
        page = range(start, min(start + _PAGE, workflows))
        kernel.start_many(THREE, [StartItem(f"three:{n}", {"number": n}) for n in page])
    kernel.close()


def _await_end(instances: Any, workflows: int) -> None:
    deadline = time.monotonic() + 300
    while instances.count_documents({"status": "completed"}) < workflows:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {workflows} workflows ended within 300 s")
        time.sleep(0.25)


def _rate(ends: list[datetime]) -> float:
    ramp = int(_RAMP * len(ends))
    middle = ends[ramp : len(ends) - ramp]
    return (len(middle) - 1) / (middle[-1] - middle[0]).total_seconds()


def _bare(site: Site, workflows: int, group: int) -> tuple[float, int]:
    """Return the workflows a second of two processes with no engine, and the statements of each."""
    with fresh_database(site) as environment:
        path = Path(environment["BATON_DATA_DIR"]) / f"{environment['BATON_DATABASE']}.bson"
        statements = record(environment, path)
        share = str(workflows // PROCESSES)
        _, seconds = measure_together(
            "write", str(path), share, str(group), processes=PROCESSES, environment=environment
        )
        return workflows / seconds, statements
