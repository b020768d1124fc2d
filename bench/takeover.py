"""How soon another process enters a step after SIGKILL of the one that was inside it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from signal import SIGKILL

import redis

from bench.children import celery, worker
from bench.figure import Figure, median, spread
from bench.site import QUEUE, Site, await_item, connect, fresh_database
from bench.workflows import HOLDING
from kernel import Kernel

#: Seconds. Short, so that a run does not wait long; a child's takeover does not depend on it.
LEASE = 3.0


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Kill a pool child, then a whole worker; the lease is what nobody may take over before."""
    seen = [_takeovers(site) for _ in range(1 if quick else 10)]
    child, whole = [first for first, _ in seen], [second for _, second in seen]
    return [
        Figure(
            name="takeover after SIGKILL of a whole worker",
            value=median(whole),
            unit="s",
            raw_name="the lease",
            raw=LEASE,
            aim="<= lease + 2 s",
            note=f"past the lease: {median(whole) - LEASE:+.2f} s; {spread(whole)}",
        ),
        Figure(
            name="takeover after SIGKILL of a pool child",
            value=median(child),
            unit="s",
            raw_name="the lease",
            raw=LEASE,
            aim="<= 2 s",
            note=spread(child),
        ),
    ]


def _takeovers(site: Site) -> tuple[float, float]:
    """Return the seconds from the kill of a child, then of a whole worker, to the next entry."""
    with (
        fresh_database(site, lease=LEASE) as environment,
        closing(connect(environment)) as kernel,
        redis.Redis.from_url(environment["BATON_REDIS_URL"]) as hints,
    ):
        kernel.ensure_schema()
        kernel.register_plan(HOLDING)
        schedule = str(site.data_dir / environment["BATON_DATABASE"])
        processes = (
            worker("one", QUEUE, concurrency=1),
            worker("two", QUEUE, concurrency=1),
            worker("control", "control", concurrency=1),
            ("beat", "--schedule", schedule, "--pidfile=", "--loglevel", "WARNING"),
        )
        with celery(*processes, environment=environment):
            prefix = environment["BATON_KEY_PREFIX"]
            child = _takeover(
                kernel, hints, prefix, "child", kill=lambda pid: os.kill(pid, SIGKILL)
            )
            whole = _takeover(
                kernel, hints, prefix, "whole", kill=lambda pid: os.killpg(os.getpgid(pid), SIGKILL)
            )
        return child, whole


def _takeover(
    kernel: Kernel, hints: redis.Redis, prefix: str, name: str, *, kill: Callable[[int], None]
) -> float:
    # This publisher rings nobody: the tick finds the candidate by itself.
    started = kernel.start_or_resume(HOLDING, biz_key=name)
    key = f"{prefix}:entries:{name}"
    pid, _ = _entry(hints, key)
    killed_ns = time.monotonic_ns()
    kill(pid)
    _, entered_ns = _entry(hints, key)
    if kernel.get(started.workflow_id).steps["prepare"].attempt != 1:
        raise RuntimeError("a completed step was entered again")
    return (entered_ns - killed_ns) / 1e9


def _entry(hints: redis.Redis, key: str) -> tuple[int, int]:
    pid, entered_ns = await_item(hints, key).decode().split(":")
    return int(pid), int(entered_ns)
