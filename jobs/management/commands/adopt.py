"""``manage.py adopt APP.MODEL``: give rows that are older than the dispatch mixin their intents.

Guarantees: shows what it would do unless ``--apply`` is given; may be repeated or broken off at any
row. Leaves to others: the decisions (a function of the team's, named by ``--with``) and the writes
(``jobs.dispatch.adoption``).
"""

import importlib
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from jobs.counted import counted
from jobs.dispatch.adoption import BATCH_ROWS, Decide, adopt, only_what_is_over
from jobs.dispatch.mixin import DispatchMixin
from jobs.management import arguments, terminal

#: Rows shown one by one; the rest is counted.
SHOWN = 20


class Command(BaseCommand):
    help = "Give rows that are older than the dispatch mixin their intents; a dry run by default."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "model", type=arguments.word, help="label of the model, such as shop.Order"
        )
        parser.add_argument(
            "--with",
            dest="decide",
            metavar="MODULE.FUNCTION",
            help="decides about each row; without it only rows that are over are adopted",
        )
        parser.add_argument("--apply", action="store_true", help="write; without it nothing is")
        parser.add_argument("--limit", type=arguments.whole, help="rows to look at; default: all")
        parser.add_argument(
            "--batch",
            type=arguments.whole,
            default=BATCH_ROWS,
            help="rows read at a time (%(default)s)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        if options["batch"] < 1 or (options["limit"] is not None and options["limit"] < 1):
            raise CommandError("--batch and --limit are numbers above zero", returncode=2)
        counts: Counter[str] = Counter()
        shown: list[list[object]] = []
        for adopted in adopt(
            _model(options["model"]),
            _function(options["decide"]),
            apply=options["apply"],
            limit=options["limit"],
            batch=options["batch"],
        ):
            counts[adopted.outcome] += 1
            if len(shown) < SHOWN or adopted.outcome == "problem":
                shown.append([adopted.pk, adopted.status, adopted.outcome, adopted.detail])
        if shown:
            colour = terminal.wants_colour(self.stdout)
            headers = ("ROW", "STATUS", "OUTCOME", "DETAIL")
            self.stdout.write(terminal.table(headers, shown, colour=colour))
        summary = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        self.stdout.write(f"{summary or 'no row without an intent'}.")
        if counts and not options["apply"]:
            self.stdout.write("Nothing was written; repeat with --apply.")
        if counts["problem"]:
            problems = counted(counts["problem"], "row")
            raise CommandError(f"{problems} could not be adopted", returncode=1)


def _model(label: str) -> type[DispatchMixin]:
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError) as exc:
        raise CommandError(f"there is no model {label!r}: {exc}", returncode=2) from None
    if not issubclass(model, DispatchMixin):
        raise CommandError(f"{label} has no dispatch intent: add DispatchMixin", returncode=2)
    return model


def _function(path: str | None) -> Decide:
    if path is None:
        return only_what_is_over
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as exc:
        raise CommandError(f"--with {path}: {exc}", returncode=2) from None
    if not callable(found):
        raise CommandError(f"--with {path}: this is no function", returncode=2)
    decide: Decide = found
    return decide
