"""One soak from the first server to the last line.

```
servers ─▶ schema ─▶ fleet ─▶ load and faults for N seconds ─▶ heal ─▶ until idle ─▶ judge
```

Guarantees that the judge looks only when nothing is in flight, or says what never ended; and that a
soak in which nothing was accepted, or that nobody could judge, is a violation. Leaves
load, faults, healing and judging to the modules of these names.
"""

import argparse
import logging
import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import redis
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.chaos.counting import PORT, Counter, counting, most_at_once
from tests.chaos.faults import Faults
from tests.chaos.fleet import SLOTS, Fleet
from tests.jobs.site import running_site
from tests.kit.ledger import read as read_ledger

_PROGRESS_SECONDS = 5.0


class Run:
    """A soak with the options of `tests.chaos.__main__`."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder

    def run(self) -> int:
        """Run; return the exit status."""
        options = self._options
        _say(f"seed {options.seed}, {options.seconds:g} s, everything in {self._folder}")
        try:
            violations, last_line = self._soak()
        except KeyboardInterrupt:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        for violation in violations:
            _say(f"  {violation}")
        if violations:
            _say(f"repeat with --seed {options.seed}; logs are in {self._folder}")
        else:
            shutil.rmtree(self._folder, ignore_errors=True)
        _say(last_line)
        return 1 if violations else 0

    def _soak(self) -> tuple[list[str], str]:
        options = self._options
        fleet = Fleet(
            self._folder,
            workers=options.workers,
            children=options.children,
            lots=self._lots("w"),
            slots=SLOTS if options.slots is None else (options.slots,),
            group_commits=options.groups,
        )
        try:
            os.environ.update(fleet.start_servers())
            _prepare()
            with running_site() as site, counting() as counter:
                fleet.env[PORT] = str(counter.port)
                return self._with_fleet(fleet, site.url + "/tides", counter)
        finally:
            fleet.close()

    def _with_fleet(self, fleet: Fleet, page: str, counter: Counter) -> tuple[list[str], str]:
        from kernel import KernelError
        from tests.chaos import judge
        from tests.chaos.business import plans
        from tests.chaos.load import Load

        judge.watch_results()
        load = Load(self._lots("l"), page, self._options.rate)
        faults = Faults(fleet, self._lots("f"), self._options.pause)
        fleet.start_processes()
        # Whoever ends the soak half-way waits for no answer of servers that may be hurt.
        submitting = threading.Thread(target=load.run, name="load", daemon=True)
        submitting.start()
        try:
            self._hurt(faults, load)
        finally:
            (self._folder / "faults.log").write_text("\n".join(faults.log) + "\n")
            load.stopping.set()
        faults.end()
        fleet.heal()
        submitting.join()
        late = self._until_idle(load, fleet)
        lines = read_ledger(self._folder / "ledger")
        violations = [f"{key} never ended" for key in late]
        with MongoClient[dict[str, Any]](fleet.mongo.url) as client:
            try:
                violations += judge.judge(
                    load, lines, counter.calls, self._hint_keys(fleet), client["chaos"]
                )
            except (KernelError, PyMongoError, redis.RedisError) as error:
                violations.append(f"cannot be judged: {type(error).__name__}: {error}")
        _say(f"{len(counter.calls)} calls of {plans.RESOURCE}, at most"
             f" {most_at_once(counter.calls)} at once, those of lost claims included")  # fmt: skip
        accepted = len(load.accepted) + len(load.jobs)
        return violations, (
            f"chaos: accepted {accepted}, terminal {accepted - len(late)},"
            f" faults {len(faults.log)}, violations {len(violations)}"
        )

    def _hurt(self, faults: Faults, load: Any) -> None:
        begun = said = time.monotonic()
        while (now := time.monotonic()) - begun < self._options.seconds:
            faults.turn()
            if now - said > _PROGRESS_SECONDS:
                said = now
                last = faults.log[-1].split("  ", 1)[1] if faults.log else "none"
                _say(f"{now - begun:5.0f} s: accepted {len(load.accepted) + len(load.jobs)},"
                     f" faults {len(faults.log)}, last: {last}")  # fmt: skip
            threading.Event().wait(0.05)

    def _until_idle(self, load: Any, fleet: Fleet) -> list[str]:
        from kernel import Unavailable
        from tests.chaos import judge

        begun = said = time.monotonic()
        while True:
            fleet.heal()
            try:
                late: list[str] | None = judge.unfinished(load)
            except Unavailable:
                late = None
            seconds = time.monotonic() - begun
            if late == [] and not self._hint_keys(fleet):
                _say(f"idle after {seconds:.0f} s")
                return []
            if seconds > self._options.idle:
                return late or []
            if time.monotonic() - said > _PROGRESS_SECONDS:
                said = time.monotonic()
                _say(f"healed, {'MongoDB is away' if late is None else f'{len(late)} to end'}")
            threading.Event().wait(0.5)

    def _hint_keys(self, fleet: Fleet) -> list[str]:
        with redis.Redis.from_url(fleet.redis.url, decode_responses=True) as client:
            keys = [str(key) for key in client.scan_iter(match="chaos*", count=1000)]
        from tests.crash import invariants

        return [key for key in keys if invariants.of_hints([key])]

    def _lots(self, use: str) -> random.Random:
        return random.Random(f"{self._options.seed}:{use}")


def _prepare() -> None:
    import django

    django.setup()
    logging.disable(logging.WARNING)  # what is away is known here
    from django.core.management import call_command

    from jobs.runtime import get_kernel
    from tests.chaos.business import plans

    call_command("migrate", verbosity=0)
    kernel = get_kernel()
    kernel.ensure_schema()
    for plan in plans.ALL:
        kernel.register_plan(plan)
    kernel.capacity.set_limit(plans.RESOURCE, max_concurrency=plans.CALLS_AT_ONCE, by="chaos")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
