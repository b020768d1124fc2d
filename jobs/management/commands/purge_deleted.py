"""``manage.py purge_deleted``: remove the rows of deleted jobs for good.

Guarantees: bounded; may run at any time and be repeated. Leaves to others: which rows may go
(``jobs.services.deleting``).
"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.counted import counted
from jobs.management import arguments
from jobs.services import deleting


class Command(BaseCommand):
    help = "Remove the rows of jobs that were deleted some time ago and have nothing under way."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=arguments.number, default=30, help="age of the deletion (%(default)s)"
        )
        parser.add_argument(
            "--limit", type=arguments.whole, default=1000, help="most rows of one run (%(default)s)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        if options["limit"] < 1 or not 0 <= options["days"] <= 36_500:
            raise CommandError("--limit is 1 or more, --days is 0 to 36500", returncode=2)
        purged = deleting.purge_deleted(
            older_than=timedelta(days=options["days"]), limit=options["limit"]
        )
        gone = counted(purged.gone, "job")
        self.stdout.write(f"{gone} purged, {purged.kept} kept for the next run.")
