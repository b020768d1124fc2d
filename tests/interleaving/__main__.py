"""Run many orders: `python -m tests.interleaving [--schedules N] [--seed S] [--jobs J] …`.

Guarantees a line every ten seconds with how far it is, a last line with the sum, the seed and story
of every violation, and exit status 1 if there was any. Leaves the servers to `tests.kit.servers`,
as in a test run.
"""

import argparse
import contextlib
import multiprocessing
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.interleaving.shards import Share, run_share, share_sums
from tests.kit import servers

#: How often a run says how far it is.
_PROGRESS_SECONDS = 10.0


def main() -> int:
    """Run every shard; return the exit status."""
    chosen = _arguments()
    seed = secrets.randbits(31) if chosen.seed is None else chosen.seed
    jobs = max(1, min(chosen.jobs, chosen.schedules))
    searched = chosen.schedules // 10 if chosen.search is None else chosen.search
    _say(
        f"{chosen.schedules} schedules from SEED={seed}, {searched} more by search, "
        f"{jobs} processes"
    )
    began = time.monotonic()
    shares = [
        Share(
            first=seed + chosen.schedules * n // jobs,
            last=seed + chosen.schedules * (n + 1) // jobs,
            number=n,
            jobs=jobs,
            pairs=not (chosen.no_pairs or chosen.story),
            slots=chosen.slots,
            story=chosen.story,
            searched=searched * (n + 1) // jobs - searched * n // jobs,
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
        _say("met: " + ", ".join(f"{count} {what}" for what, count in sorted(met.items())))
    _say(f"{schedules / (time.monotonic() - began):.0f} schedules/s")
    _say(f"interleave: {schedules} schedules, {violations} violations")
    return 1 if violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interleaving", description=__doc__)
    parser.add_argument("--schedules", type=_count, default=3000)
    parser.add_argument("--seed", type=_count, default=None, help="the first one; printed if drawn")
    parser.add_argument("--jobs", type=_number, default=os.cpu_count() or 2)
    parser.add_argument("--slots", type=_number, default=1, help="claims a worker runs at once")
    parser.add_argument(
        "--search", type=_count, help="orders searched by Hypothesis (a tenth of the schedules)"
    )
    parser.add_argument("--no-pairs", action="store_true", help="leave out every order of pairs")
    parser.add_argument("--story", action="store_true", help="tell what happened, whatever it was")
    return parser.parse_args()


def _count(text: str) -> int:
    """Read a number of things that there may be none of."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def _number(text: str) -> int:
    """Read a number of things that there must be one of."""
    if (number := _count(text)) == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def _tell(schedules: int, violations: int, seconds: float) -> None:
    pace = schedules / seconds
    _say(
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


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
