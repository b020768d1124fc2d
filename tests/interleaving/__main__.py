"""Run many orders: `python -m tests.interleaving [--schedules N] [--seed S] [--jobs J] …`.

Guarantees a line every ten seconds with how far it is, a last line with the sum, the seed and story
of every violation, and exit status 1 if there was any; to look at nothing is refused. Leaves the
servers to `tests.kit.servers`, as in a test run.
"""

import argparse
import contextlib
import multiprocessing
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kernel import limits
from tests.interleaving.shards import Share, run_share, share_sums
from tests.kit import programs, servers
from tests.kit.programs import say

#: How often a run says how far it is.
_PROGRESS_SECONDS = 10.0


def main() -> int:
    """Run every shard; return the exit status."""
    chosen = _arguments()
    seed = secrets.randbits(31) if chosen.seed is None else chosen.seed
    pairs = not (chosen.no_pairs or chosen.story)
    jobs = chosen.jobs if pairs else max(1, min(chosen.jobs, chosen.schedules))
    searched = f"{chosen.search} more by search" + ", every order of pairs" * pairs
    say(f"{chosen.schedules} schedules from SEED={seed}, {searched}, {jobs} processes")
    began = time.monotonic()
    shares = [
        Share(
            first=seed + chosen.schedules * n // jobs,
            last=seed + chosen.schedules * (n + 1) // jobs,
            number=n,
            jobs=jobs,
            pairs=pairs,
            slots=chosen.slots,
            story=chosen.story,
            searched=chosen.search * (n + 1) // jobs - chosen.search * n // jobs,
        )
        for n in range(jobs)
    ]
    context = multiprocessing.get_context("spawn")
    so_far = context.Array("q", 2 * jobs)
    with _servers() as url, context.Pool(jobs, share_sums, (so_far,)) as pool:
        work = pool.starmap_async(run_share, [(url, share) for share in shares], chunksize=1)
        while not work.ready():
            work.wait(_PROGRESS_SECONDS)
            if not work.ready():
                _tell(sum(so_far[::2]), sum(so_far[1::2]), time.monotonic() - began)
        sums = work.get()
    schedules = sum(one.schedules for one in sums)
    violations = sum(one.violations for one in sums)
    met = sum((one.counts for one in sums), Counter[str]())
    if met:
        say("met: " + ", ".join(f"{count} {what}" for what, count in sorted(met.items())))
    say(f"{schedules / (time.monotonic() - began):.0f} schedules/s")
    say(f"interleave: {schedules} schedules, {violations} violations")
    return 1 if violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interleaving", description=__doc__)
    parser.add_argument("--schedules", type=programs.counted(0), default=3000)
    parser.add_argument("--seed", type=programs.counted(0), help="the first one; printed if drawn")
    parser.add_argument("--jobs", type=programs.counted(1), default=os.cpu_count() or 2)
    slots = programs.counted(1, limits.SLOTS_PER_CHILD)
    parser.add_argument("--slots", type=slots, default=1, help="claims a worker runs at once")
    parser.add_argument(
        "--search",
        type=programs.counted(0),
        help="orders that Hypothesis looks at (a tenth of the schedules)",
    )
    parser.add_argument("--no-pairs", action="store_true", help="leave out every order of pairs")
    parser.add_argument("--story", action="store_true", help="tell what happened, whatever it was")
    chosen = parser.parse_args()
    if chosen.search is None:
        chosen.search = chosen.schedules // 10
    if chosen.no_pairs and not chosen.schedules and not chosen.search:
        parser.error("no pairs, no schedules and no search: nothing would be proved")
    return chosen


def _tell(schedules: int, violations: int, seconds: float) -> None:
    pace = schedules / seconds
    say(
        f"  {seconds:.0f} s: {schedules} schedules, {violations} violations, {pace:.0f} schedules/s"
    )


@contextlib.contextmanager
def _servers() -> Iterator[str]:
    if Path("/dev/shm").is_dir() and "TMPDIR" not in os.environ:
        tempfile.tempdir = "/dev/shm"
    leads = servers.lead_run()
    try:
        yield servers.servers().mongo_url
    finally:
        if leads:
            servers.end_run()


if __name__ == "__main__":
    programs.run(main)
