"""Three-step workflows a second with two worker processes, beside a loop of bare writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bench.child import bare_document
from bench.children import measure_together
from bench.figure import Figure, median, spread
from bench.site import Site, connect, fresh_database, mongo
from bench.workflows import THREE

PROCESSES = 2


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Drain a prepared backlog, then write the same number of times without an engine."""
    workflows, repeats = (200, 3) if quick else (1000, 5)
    engine, bare, updates, counts = [], [], [], []
    for _ in range(repeats):
        per_second, writes = _drain(site, workflows)
        engine.append(per_second)
        counts.append(writes)
        bare.append(_write(site, workflows, round(writes)))
        updates.append(_updates(site, seconds=0.5 if quick else 2))
    writes = median(counts)
    note = f"{writes:.1f} writes a workflow; {spread(engine)}"
    return [
        Figure(
            name="3-step workflows, 2 processes",
            value=median(engine),
            unit="/s",
            raw_name=f"bare loop of {round(writes)} writes, 2 processes",
            raw=median(bare),
            aim=">= 300/s, ratio >= 0.55",
            note=note,
        ),
        Figure(
            name="durable steps, 2 processes",
            value=3 * median(engine),
            unit="/s",
            raw_name="update_one, majority + journal, 1 thread",
            raw=median(updates),
            note=spread(updates),
        ),
    ]


def _drain(site: Site, workflows: int) -> tuple[float, float]:
    """Return workflows a second and the writes each of them took."""
    with fresh_database(site) as environment:
        kernel = connect(environment)
        kernel.ensure_schema()
        kernel.register_plan(THREE)
        for number in range(workflows):
            kernel.start_or_resume(THREE, biz_key=f"three:{number}", input={"number": number})
        kernel.close()
        before = _commands(environment)
        answers, seconds = measure_together("drain", processes=PROCESSES, environment=environment)
        writes = _commands(environment) - before
        ran = sum(answer["ran"] for answer in answers)
        if ran != workflows:
            raise RuntimeError(f"{ran} of {workflows} workflows ran")
        return workflows / seconds, writes / workflows


def _write(site: Site, workflows: int, writes: int) -> float:
    with fresh_database(site) as environment:
        with mongo(environment) as client:
            _bare(client, environment).create_index("workflow_id", unique=True)
        share = str(workflows // PROCESSES)
        _, seconds = measure_together(
            "write", share, str(writes), processes=PROCESSES, environment=environment
        )
        return workflows / seconds


def _updates(site: Site, *, seconds: float) -> float:
    with fresh_database(site) as environment, mongo(environment) as client:
        collection = _bare(client, environment)
        collection.create_index("workflow_id", unique=True)
        collection.insert_one(bare_document("one"))
        done, begun = 0, time.perf_counter()
        while (passed := time.perf_counter() - begun) < seconds:
            collection.update_one({"workflow_id": "one"}, {"$set": {"revision": done}})
            done += 1
        return done / passed


def _bare(client: Any, environment: Mapping[str, str]) -> Any:
    return client[environment["BATON_DATABASE"]]["bare"]


def _commands(environment: Mapping[str, str]) -> int:
    """Count the writing commands the server has run so far."""
    with mongo(environment) as client:
        ran = client.admin.command("serverStatus")["metrics"]["commands"]
    return sum(int(ran[name]["total"]) for name in ("update", "findAndModify", "insert"))
