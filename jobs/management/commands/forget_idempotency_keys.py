"""``manage.py forget_idempotency_keys``: delete old keys; for a daily timer.

Guarantees: a key is kept for seven days at least and while its job is open; one run deletes a
bounded number. Leaves to others: what a key protects (``jobs.services.idempotency``).
"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.counted import counted
from jobs.management import arguments
from jobs.services import idempotency

_DAYS_MIN = idempotency.KEPT_AT_LEAST.days
_DAYS_MAX = 36_500


class Command(BaseCommand):
    help = "Delete idempotency keys that nobody can need any more; repeatable."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=arguments.whole, default=_DAYS_MIN, help="age, 7 or more"
        )
        parser.add_argument(
            "--limit", type=arguments.whole, default=10_000, help="most keys of one run"
        )
        parser.add_argument("--dry-run", action="store_true", help="count, delete nothing")

    def handle(self, *_: Any, **options: Any) -> None:
        days, limit = options["days"], options["limit"]
        if not _DAYS_MIN <= days <= _DAYS_MAX:
            message = f"--days: give {_DAYS_MIN} to {_DAYS_MAX}; keys are promised for a week"
            raise CommandError(message, returncode=2)
        if limit < 1:
            raise CommandError("--limit: give 1 or more", returncode=2)
        age = timedelta(days=days)
        gone = idempotency.forget(older_than=age, limit=limit, dry_run=options["dry_run"])
        done = "would go" if options["dry_run"] else "gone"
        self.stdout.write(f"{counted(gone, 'key')} {done}.")
