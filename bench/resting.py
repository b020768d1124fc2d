"""The processor time that a worker takes while there is nothing to do."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.children import celery, worker
from bench.figure import Figure
from bench.site import QUEUE, Site, connect, fresh_database

CHILDREN: Final = 4
#: What it takes to start is not what it takes at rest: nothing tells when that is over, seconds.
_SETTLING: Final = 5.0
#: Fields of /proc/PID/stat behind the name: group, time in user mode, time in the kernel.
_GROUP, _USER, _SYSTEM = 2, 11, 12


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Watch an idle worker and one of plain Celery side by side; nothing without /proc."""
    if not Path("/proc/self/stat").exists():
        return []
    seconds = 5.0 if quick else 30.0
    with fresh_database(site) as environment:
        kernel = connect(environment)
        kernel.ensure_schema()
        kernel.close()
        # With settings named, Celery would set up Django and with it all of ours.
        bare = {**environment, "DJANGO_SETTINGS_MODULE": ""}
        with (
            celery(_quiet("plain"), environment=bare, app="bench.plain") as [plain],
            celery(_quiet("bench"), environment=environment) as [ours],
        ):
            time.sleep(_SETTLING)
            taken = _taken(ours.pid, plain.pid, seconds=seconds)
    return [
        Figure(
            name=f"processor of an idle worker of {CHILDREN} children",
            value=taken[ours.pid],
            unit="ms/s",
            raw_name="the same of plain Celery",
            raw=taken[plain.pid],
            note=f"{seconds:g} s, its children and threads included",
        )
    ]


def _quiet(name: str) -> tuple[str, ...]:
    queue = QUEUE if name == "bench" else f"{QUEUE}-{name}"
    return worker(name, queue, concurrency=CHILDREN)


def _taken(*groups: int, seconds: float) -> Mapping[int, float]:
    """Return the milliseconds of processor a second that each process group took."""
    before, begun = _ticks(groups), time.monotonic()
    time.sleep(seconds)
    after, passed = _ticks(groups), time.monotonic() - begun
    tick = 1000 / os.sysconf("SC_CLK_TCK")
    return {group: (after[group] - before[group]) * tick / passed for group in groups}


def _ticks(groups: tuple[int, ...]) -> dict[int, int]:
    ticks = dict.fromkeys(groups, 0)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended meanwhile
        if (group := int(fields[_GROUP])) in ticks:
            ticks[group] += int(fields[_USER]) + int(fields[_SYSTEM])
    return ticks
