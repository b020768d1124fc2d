"""`python -m bench`: measure, and print each figure beside the raw limit of the same run."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from bench import (
    api_accept,
    api_outage,
    capacity,
    flat,
    footprint,
    idle,
    lanes,
    publishing,
    resting,
    takeover,
    throughput,
    waking,
)
from bench.figure import Figure, table
from bench.site import Site, running_site

Measure = Callable[..., list[Figure]]

MEASURES: dict[str, Measure] = {
    "throughput": throughput.measure,
    "idle": idle.measure,
    "takeover": takeover.measure,
    "footprint": footprint.measure,
    "resting": resting.measure,
    "lanes": lanes.measure,
    "publishing": publishing.measure,
    "api_accept": api_accept.measure,
    "api_outage": api_outage.measure,
    "capacity": capacity.measure,
    "waking": waking.measure,
    "flat": flat.measure,
}

#: Measured only when named: crowds of a hundred thousand and more take many minutes.
ONLY_WHEN_NAMED = frozenset({"waking", "flat"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the wanted measurements; return the exit status, 1 when one of them failed."""
    options = _parser().parse_args(arguments)
    wanted = options.only or [name for name in MEASURES if name not in ONLY_WHEN_NAMED]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"Python {platform.python_version()}, {cores} cores, everything on this machine")
    figures: list[Figure] = []
    failed: list[str] = []
    with running_site() as site:
        for name in wanted:
            try:
                figures += _measured(name, site, quick=options.quick)
            except Exception:  # noqa: BLE001 - what the other measurements found is still worth having
                traceback.print_exc()
                failed.append(name)
    print()
    print(table(figures))
    print()
    for figure in figures:
        if figure.note:
            print(f"{figure.name}: {figure.note}")
    if failed:
        print(f"not measured: {', '.join(failed)}")
    return 1 if failed else 0


def _measured(name: str, site: Site, *, quick: bool) -> list[Figure]:
    print(f"{name} ...", end=" ", flush=True)
    begun = time.perf_counter()
    figures = MEASURES[name](site, quick=quick)
    print(f"{time.perf_counter() - begun:.1f} s", flush=True)
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, within a minute")
    parser.add_argument(
        "--only", action="append", choices=list(MEASURES), help="measure this (may be repeated)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
