"""``manage.py create_token USER --tenant T | --ops``: issue an API token and print it, this once.

Guarantees: only the token goes to standard output, so that it can be piped. Leaves to others: the
rules of tokens (``jobs.services.access``).
"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs.management import arguments
from jobs.services import access
from jobs.services.errors import ServiceError


class Command(BaseCommand):
    help = "Issue an API token for a user, of a tenant or of the operators. It is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", type=arguments.word, help="name of an existing user")
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--tenant", type=arguments.word, default="", help="slug of the tenant")
        whose.add_argument("--ops", action="store_true", help="for /capacity; of no tenant")
        parser.add_argument(
            "--name", type=arguments.word, default="command line", help="what the token is for"
        )
        parser.add_argument(
            "--days", type=arguments.whole, help="days until it expires; default: never"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        user = get_user_model()._default_manager.filter(username=options["user"]).first()
        if user is None:
            message = f"there is no user {options['user']!r}; create one with createsuperuser"
            raise CommandError(message, returncode=3)
        days = options["days"]
        try:
            expires_at = None if days is None else timezone.now() + timedelta(days=days)
            issued = access.issue_token(
                user=user,
                tenant=options["tenant"],
                ops=options["ops"],
                name=options["name"],
                expires_at=expires_at,
            )
        except (ServiceError, OverflowError) as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(issued.raw)
