"""`make profile`: where the time of a three-step workflow goes, layer by layer.

One worker process, with one claim at a time and with sixteen, works off a backlog; beside its
layers stands what the whole process and the servers used. Read the processor's time: what passed
includes waiting for the database, for others of a group and for the interpreter.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.layers import Layer, Layers, Method
from bench.site import QUEUE, Site, connect, fresh_database, running_site
from bench.throughput import publish
from bench.workflows import definitions
from kernel.engine.crew import Crew
from kernel.engine.drain import Drain
from kernel.engine.hinting import HintWriter
from kernel.engine.taking import Taker
from kernel.engine.wave import WaveRunner
from kernel.hints import RedisHints
from kernel.store import InstanceStore

#: From the outside in: each layer's own time is what is left when those below it are taken away.
LAYERS: Final[dict[str, list[Method]]] = {
    "find candidates in Redis": [(RedisHints, "pop_many")],
    "claim and read them in MongoDB": [(InstanceStore, "claim"), (InstanceStore, "claim_group")],
    "note leases and ends in Redis": [(HintWriter, "claimed"), (HintWriter, "forget_ended")],
    "taking, the rest": [(Taker, "take")],
    "activity code and its context": [(WaveRunner, "_invoke")],
    "decide what an outcome means": [(WaveRunner, "_come_home")],
    "commit: wait for others, write": [(InstanceStore, "commit_grouped")],
    "waves, the rest": [(WaveRunner, "run_begun")],
    "claims, the rest": [(Drain, "_run"), (Crew, "_carry")],
    "look for more": [(Drain, "drain")],
}
_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a backlog cost: seconds in all, of this process, of each server by name."""

    workflows: int
    seconds: float
    process: float
    servers: dict[str, float]
    layers: dict[str, Layer]


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile with each number of slots and print a table for each."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--workflows", type=int, default=1000, help="backlog for each (1000)")
    parser.add_argument("--slots", type=int, nargs="*", default=[1, 16], help="slots (1 16)")
    options = parser.parse_args(arguments)
    with running_site() as site:
        for slots in options.slots:
            print(table(profile(site, workflows=options.workflows, slots=slots), slots), flush=True)
    return 0


def profile(site: Site, *, workflows: int, slots: int) -> Profile:
    """Work off a backlog and tell where the time went.

    Raises:
        RuntimeError: not all workflows ran.
    """
    # No renewal belongs to the picture, and the keeper that a child needs beats but once.
    with fresh_database(site, lease=600) as environment:
        publish(environment, workflows)
        kernel = connect(environment, slots=slots, kept=True)
        for definition in definitions():
            kernel.register(definition)
        kernel.find(biz_key="opens the connection")
        layers, ran = Layers(LAYERS), 0
        servers, process, began = _servers(), time.process_time(), time.perf_counter()
        with layers.watched():
            while ran < workflows and (more := kernel.drain([QUEUE])):
                ran += more
        seconds, process = time.perf_counter() - began, time.process_time() - process
        servers = {name: used - servers.get(name, 0.0) for name, used in _servers().items()}
        kernel.close()
    if ran != workflows:
        raise RuntimeError(f"{ran} of {workflows} workflows ran")
    return Profile(
        workflows=workflows,
        seconds=seconds,
        process=process,
        servers=servers,
        layers=layers.measured,
    )


def table(found: Profile, slots: int) -> str:
    """Return a profile as text: milliseconds a workflow."""
    each = 1000 / found.workflows
    head = (
        f"{'a workflow, ' + str(slots) + ' slot(s)':<34} {'calls':>7} {'cpu ms':>8} {'wall ms':>8}"
    )
    lines = [head, "-" * len(head)]
    for name, layer in found.layers.items():
        calls = layer.calls / found.workflows
        lines.append(f"{name:<34} {calls:>7.2f} {layer.cpu * each:>8.3f} {layer.wall * each:>8.2f}")
    rest = found.process - sum(layer.cpu for layer in found.layers.values())
    lines.append(f"{'threads, keeper, driver':<34} {'':>7} {rest * each:>8.3f}")
    lines.append(f"{'the worker process':<34} {'':>7} {found.process * each:>8.3f}")
    lines += (
        f"{name:<34} {'':>7} {used * each:>8.3f}" for name, used in sorted(found.servers.items())
    )
    lines.append(f"{'in all':<34} {'':>7} {'':>8} {found.seconds * each:>8.2f}")
    lines.append(f"{found.workflows / found.seconds:.0f} workflows/s from one process")
    lines.append("What passed (wall) is summed over the slots and overlaps: read the cpu.\n")
    return "\n".join(lines)


def _servers() -> dict[str, float]:
    """Return the processor seconds of this process's servers so far; nothing without /proc."""
    used: dict[str, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, numbers = status.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        fields = numbers.split()
        if int(fields[1]) == os.getpid() and name.startswith(("mongod", "redis")):
            seconds = (int(fields[11]) + int(fields[12])) / _TICKS
            used[name] = used.get(name, 0.0) + seconds
    return used


if __name__ == "__main__":
    sys.exit(main())
