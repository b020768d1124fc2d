"""Run the whole crash matrix outside pytest: `python -m tests.crash [--every-way] [--slots N] …`.

Guarantees a last line with the sum, and exit status 1 if anything was violated, with what repeats
it; a walk that breaks down is a violation. Leaves the servers to `tests.kit.servers`, as in a test
run.
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product
from queue import SimpleQueue
from typing import Any

from tests.crash.kills import How, When
from tests.crash.lab import Lab, Tally, open_lab
from tests.crash.report import last_line, row
from tests.crash.scenarios import MATRIX, OUTBOX, WAITING
from tests.kit import groups, programs, servers
from tests.kit.programs import say


def main() -> int:
    """Walk every scenario in several labs at once; return the exit status."""
    every = (*MATRIX, *OUTBOX, *WAITING)
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=", ".join(every))
    parser.add_argument("--every-way", action="store_true", help="each boundary in all four ways")
    parser.add_argument("--jobs", type=programs.counted(1), default=os.cpu_count() or 2)
    groups.add_options(parser)
    chosen = parser.parse_args()
    groups.choose(chosen)
    unknown = [name for name in chosen.scenario if name not in every]
    if unknown:
        parser.error(f"no scenario {unknown[0]}; there are {', '.join(every)}")
    hows: list[How | None] = [*How] if chosen.every_way else [None]
    walks = list(product(chosen.scenario or every, When, hows))
    with _labs(chosen.jobs) as labs, ThreadPoolExecutor(chosen.jobs) as pool:
        rows = list(pool.map(lambda walk: _walk(labs, *walk), walks))
    if violated := sorted({each["scenario"] for each in rows if each["violations"]}):
        say(f'repeat with make crash ARGS="{" ".join([*violated, *_as_given(chosen)])}"')
    say(last_line(rows))
    return 1 if any(each["violations"] for each in rows) else 0


def _as_given(chosen: argparse.Namespace) -> list[str]:
    """Return the options that change what a walk meets."""
    numbers = {"--slots": chosen.slots, "--groups": chosen.groups}
    given = [f"{name} {value}" for name, value in numbers.items() if value is not None]
    return [*given, *(["--every-way"] if chosen.every_way else [])]


@contextmanager
def _labs(count: int) -> Iterator["SimpleQueue[Lab]"]:
    leads = servers.lead_run()
    os.environ.setdefault("BATON_DATA_DIR", str(servers.run_dir() / "data"))
    labs: SimpleQueue[Lab] = SimpleQueue()
    try:
        with ExitStack() as stack:
            mongo_url = servers.servers().mongo_url
            for n in range(count):
                folder = servers.run_dir() / f"lab-{n}"
                labs.put(stack.enter_context(open_lab(folder, mongo_url)))
            yield labs
    finally:
        if leads:
            servers.end_run()


def _walk(labs: "SimpleQueue[Lab]", scenario: str, when: When, how: How | None) -> dict[str, Any]:
    lab = labs.get()
    try:
        tally = lab.walk(scenario, when, how)
    except Exception as broken:  # noqa: BLE001 - the other walks go on; this one proves nothing
        tally = Tally(violations=[f"{scenario}, {when}: {type(broken).__name__}: {broken}"])
    finally:
        labs.put(lab)
    say(f"{scenario:22} {when:6} {how or 'both':8} {tally.kills:4} kills"
        f" {len(tally.violations):3} violations")  # fmt: skip
    for violation in tally.violations:
        say(f"  {violation}")
    return row(scenario, tally)


if __name__ == "__main__":
    programs.run(main)
