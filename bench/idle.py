"""From a start to the first line of step 1, and to the end, on an idle system with Celery."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from bench.children import ROOT, celery, worker
from bench.figure import Figure, percentile
from bench.site import QUEUE, Site, await_item, connect, fresh_database, mongo
from kernel.hints.keys import Keys


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Start one workflow after the other, each when the one before has ended."""
    samples = 60 if quick else 400
    with fresh_database(site) as environment:
        kernel = connect(environment)
        kernel.ensure_schema()
        kernel.close()
        with celery(worker("bench", QUEUE, concurrency=2), environment=environment):
            seen = _client(environment, samples)
    noop, first, end = seen["noop"], seen["first"], seen["end"]
    lines = (
        ("idle start to first line, p50", first, 50, "p50 <= 12 ms"),
        ("idle start to first line, p99", first, 99, "p99 <= 30 ms"),
        ("3 steps end to end, idle, p50", end, 50, "p50 <= 18 ms"),
        ("3 steps end to end, idle, p99", end, 99, ""),
    )
    return [
        Figure(
            name=name,
            value=percentile(values, percent),
            unit="ms",
            raw_name=f"Celery no-op task p{percent}",
            raw=percentile(noop, percent),
            aim=aim,
            note=f"{samples} samples",
        )
        for name, values, percent, aim in lines
    ]


def _client(environment: Mapping[str, str], samples: int) -> dict[str, list[float]]:
    """Run the publishing side in a process of its own, as a web process would be."""
    answer = subprocess.run(
        [sys.executable, "-m", "bench.idle", str(samples)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seen: dict[str, list[float]] = json.loads(answer.stdout)
    return seen


def publish(samples: int) -> dict[str, list[float]]:
    """Measure from inside a publisher; the first tenth only warms everything up."""
    import django

    django.setup()
    import redis

    from bench.workflows import THREE
    from jobs.runtime import get_kernel

    kernel = get_kernel()
    kernel.register_plan(THREE)
    name = os.environ["BATON_DATABASE"]
    noop, first, end = [], [], []
    with (
        mongo(os.environ) as client,
        redis.Redis.from_url(os.environ["BATON_REDIS_URL"]) as hints,
    ):
        instances = client[name]["workflow_instances"]
        for number in range(samples + samples // 10):
            noop.append(_noop(hints, f"{name}:noop"))
            begun = time.monotonic_ns()
            started = kernel.start_or_resume(THREE, biz_key=f"idle:{number}", input={})
            ended = _end_of(instances, started.workflow_id)
            instance = kernel.get(started.workflow_id)
            first.append((instance.output["one"]["entered_ns"] - begun) / 1e6)
            end.append((ended - begun) / 1e6)
            _await_rest(hints)
    kernel.close()
    return {"noop": noop[-samples:], "first": first[-samples:], "end": end[-samples:]}


def _noop(hints: Any, key: str) -> float:
    """Send the no-op task and return the milliseconds until its first line."""
    from celery import current_app

    begun = time.monotonic_ns()
    current_app.send_task(
        "bench.noop", args=[os.environ["BATON_REDIS_URL"], key], queue=QUEUE, ignore_result=True
    )
    return (int(await_item(hints, key)) - begun) / 1e6


def _await_rest(hints: Any) -> None:
    """Wait until the worker has forgotten the last claim, which it does at the end of its drain."""
    leases = Keys(os.environ["BATON_KEY_PREFIX"]).of(QUEUE).leases
    deadline = time.monotonic() + 30
    while hints.zcard(leases):
        if time.monotonic() > deadline:
            raise RuntimeError("the worker did not come to rest within 30 s")
        time.sleep(0.001)


def _end_of(instances: Any, workflow_id: str) -> int:
    """Wait until the instance is seen completed; return the moment, from the shared clock."""
    deadline = time.monotonic() + 30
    found = {"workflow_id": workflow_id, "status": "completed"}
    while time.monotonic() < deadline:
        if instances.find_one(found, {"_id": 1}) is not None:
            return time.monotonic_ns()
        time.sleep(0.001)
    raise RuntimeError(f"{workflow_id} did not end within 30 s")


if __name__ == "__main__":
    print(json.dumps(publish(int(sys.argv[1]))))
