"""Let a full-size crowd through a limit: `python -m tests.capacity_proof`.

Sizes come from the environment (`tests.capacity_proof.sizes`); those of `make capacity` are a
thousand workflows of half a second behind a limit of eight, on two workers of four children with
four slots each.

Guarantees a last line with the sum, and exit status 1 if a limit or a turn was not kept. Leaves the
servers to `tests.kit.servers`, as in a test run.
"""

import os
import sys
import time
import uuid

from tests.capacity_proof.crowd import Report, run_crowd
from tests.capacity_proof.deployment import deployed, with_workers
from tests.capacity_proof.sizes import CALL_MS, CHILDREN, LIMIT, ORDER_KEPT, WORKERS, WORKFLOWS
from tests.kit import servers

#: The most answers of "no" per permit that a line without a herd needs.
REFUSED_MAX = 1.5


def main() -> int:
    """Run the crowd and report; return the exit status."""
    leads = servers.lead_run()
    os.environ.setdefault("BATON_DATA_DIR", str(servers.run_dir() / "data"))
    try:
        report, seconds = _run()
    finally:
        if leads:
            servers.end_run()
    ideal = WORKFLOWS * CALL_MS / 1000 / LIMIT
    sys.stdout.write(
        f"{seconds:.1f} s in all, {ideal:.1f} s if the limit were always used; "
        f"calls of lost claims {report.lost}, repeated {report.repeated}, "
        f"farthest from its turn {report.displacement}\n{report.line()}\n"
    )
    is_fine = not report.violations and not report.repeated and report.most <= report.limit
    is_fair = report.refused_per_granted <= REFUSED_MAX and report.displacement <= ORDER_KEPT
    return 0 if is_fine and is_fair else 1


def _run() -> tuple[Report, float]:
    running, name = servers.servers(), f"proof_{uuid.uuid4().hex[:12]}"
    env = {
        "BATON_MONGO_URL": running.mongo_url,
        "BATON_REDIS_URL": running.redis_url,
        "BATON_BROKER_URL": running.redis_url,
        "BATON_DATABASE": name,
        "BATON_KEY_PREFIX": name,
    }
    folder = servers.run_dir() / name
    folder.mkdir()
    with deployed(env, folder) as deployment:
        with_workers(deployment, workers=WORKERS, children=CHILDREN)
        begun = time.monotonic()
        within = 120 + 6 * WORKFLOWS * CALL_MS / 1000 / LIMIT
        report = run_crowd(
            deployment, workflows=WORKFLOWS, call_ms=CALL_MS, limit=LIMIT, within=within
        )
        return report, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
