"""``manage.py verify``: tell whether what is stored contradicts what Baton promises.

Guarantees: reads only, in pages; findings on stdout, progress on stderr; exit status 0 nothing
found, 1 something found, 2 could not look or wrong usage. Leaves to others: the rules (the kernel,
``jobs.verifying``), and every repair.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from jobs import verifying
from jobs.counted import counted
from jobs.management import arguments, terminal
from jobs.runtime import get_kernel
from kernel import Finding, KernelError, Looked, StoreUnavailable

COULD_NOT_LOOK = 2
#: Findings told one by one; the summary counts them all.
_TOLD = 200
#: Seconds between two lines of progress.
_PROGRESS_EVERY = 5.0


class Command(BaseCommand):
    help = "Check the stored facts against the invariants; changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--limit", type=arguments.whole, help="most instances, signals, resources and rows"
        )
        parser.add_argument(
            "--sample", type=arguments.whole, help="so many instances drawn at random instead"
        )
        parser.add_argument("--json", action="store_true", help="one finding a line, then the sum")

    def handle(self, *_: Any, **options: Any) -> None:
        bounds = options["limit"], options["sample"]
        if any(bound is not None and bound < 1 for bound in bounds):
            raise CommandError("--limit and --sample are 1 or more", returncode=COULD_NOT_LOOK)
        self._looked: Counter[str] = Counter()
        self._told_at = time.monotonic()
        found: Counter[int] = Counter()
        try:
            for finding in self._findings(*bounds):
                found[finding.invariant] += 1
                if options["json"]:
                    told = asdict(finding) | {"advice": finding.advice}
                    self.stdout.write(json.dumps(told, ensure_ascii=False))
                elif found.total() <= _TOLD:
                    self._tell(finding)
        except (KernelError, DatabaseError) as error:
            said = terminal.unanswered(error) if isinstance(error, StoreUnavailable) else str(error)
            raise CommandError(f"could not look: {said}", returncode=COULD_NOT_LOOK) from None
        self._sum_up(found, as_json=options["json"])
        if found:
            sys.exit(1)

    def _findings(self, limit: int | None, sample: int | None) -> Iterator[Finding]:
        kernel = get_kernel()
        yield from kernel.verify(limit=limit, sample=sample, on_page=self._on_kernel_page)
        yield from verifying.verify(kernel, limit=limit, on_page=self._on_page)

    def _on_kernel_page(self, looked: Looked) -> None:
        self._on_page(looked.counts)

    def _on_page(self, looked: Counter[str]) -> None:
        self._looked |= looked
        if time.monotonic() - self._told_at > _PROGRESS_EVERY:
            self._told_at = time.monotonic()
            parts = (f"{count} {kind}" for kind, count in self._looked.items())
            self.stderr.write(f"looked at {', '.join(parts)}")

    def _tell(self, finding: Finding) -> None:
        lines = (
            f"invariant {finding.invariant}: {finding.subject} {finding.biz_key}",
            f"  {finding.fact}",
            f"  what to do: {finding.advice}",
        )
        self.stdout.write("\n".join(terminal.printable(line.rstrip()) for line in lines))

    def _sum_up(self, found: Counter[int], *, as_json: bool) -> None:
        if as_json:
            told = {"looked": dict(self._looked), "findings": found.total()}
            self.stdout.write(json.dumps(told))
            return
        rows = [[kind, count] for kind, count in self._looked.items()]
        colour = terminal.wants_colour(self.stdout)
        self.stdout.write(terminal.table(("LOOKED AT", "COUNT"), rows, colour=colour))
        if found:
            by_number = [[number, found[number]] for number in sorted(found)]
            self.stdout.write(terminal.table(("INVARIANT", "FINDINGS"), by_number, colour=colour))
        self.stdout.write(f"verify: {counted(found.total(), 'finding')}")
