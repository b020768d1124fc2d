"""SIGKILL a whole worker in the middle of a step: how soon is the step entered elsewhere?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Any

import redis

from bench.children import celery, worker
from bench.figure import Figure, median, spread
from bench.site import QUEUE, Site, connect, fresh_database
from bench.workflows import HOLDING

LEASE = 3.0
_STEP_TIMEOUT = 60


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Kill whole workers; the raw limit is the lease, before whose end nobody may take over."""
    seconds = [_takeover(site) for _ in range(1 if quick else 5)]
    late = [value - LEASE for value in seconds]
    return [
        Figure(
            name="takeover after SIGKILL of a whole worker",
            value=median(seconds),
            unit="s",
            raw_name="the lease",
            raw=LEASE,
            aim="<= lease + 2 s",
            note=f"past the lease: {median(late):+.2f} s; {spread(seconds)}",
        )
    ]


def _takeover(site: Site) -> float:
    """Return the seconds from the kill to the step's next entry, by another worker."""
    with fresh_database(site, lease=LEASE) as environment, ExitStack() as stack:
        kernel = connect(environment)
        stack.callback(kernel.close)
        kernel.ensure_schema()
        kernel.register_plan(HOLDING)
        hints = stack.enter_context(redis.Redis.from_url(environment["BATON_REDIS_URL"]))
        _start_stack(stack, environment, site.data_dir)
        started = kernel.start_or_resume(HOLDING, biz_key="hold:1")
        # Nobody rang for this publisher: the tick finds the candidate by itself.
        key = f"{environment['BATON_KEY_PREFIX']}:entries:hold:1"
        pid, _ = _entry(hints, key)
        killed_ns = time.monotonic_ns()
        os.killpg(os.getpgid(pid), SIGKILL)
        _, entered_ns = _entry(hints, key)
        if kernel.get(started.workflow_id).steps["prepare"].attempt != 1:
            raise RuntimeError("a completed step was entered again")
        return (entered_ns - killed_ns) / 1e9


def _start_stack(stack: ExitStack, environment: Mapping[str, str], data_dir: Path) -> None:
    schedule = str(data_dir / environment["BATON_DATABASE"])
    workers = [
        worker("one", QUEUE, concurrency=1),
        worker("two", QUEUE, concurrency=1),
        worker("control", "control", concurrency=1),
    ]
    for arguments in workers:
        stack.enter_context(celery(*arguments, environment=environment))
    beat = ("beat", "--schedule", schedule, "--pidfile=", "--loglevel", "WARNING")
    stack.enter_context(celery(*beat, environment=environment, ready=None))


def _entry(hints: Any, key: str) -> tuple[int, int]:
    reply = hints.blpop([key], timeout=_STEP_TIMEOUT)
    if reply is None:
        raise RuntimeError(f"the step was not entered within {_STEP_TIMEOUT} s")
    pid, entered_ns = reply[1].decode().split(":")
    return int(pid), int(entered_ns)
