"""``manage.py rotate_token ID``: issue a token in another one's place and print it, this once.

Guarantees: only the token goes to standard output, so that it can be piped. Leaves to others: the
rules of tokens (``jobs.services.access``).
"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.management import arguments
from jobs.models import ApiToken
from jobs.services import access
from jobs.services.errors import ServiceError


class Command(BaseCommand):
    help = "Issue a token in place of another, which goes on working for a while."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "token_id", type=arguments.whole, help="number of the token, as the console shows"
        )
        hours = int(access.OVERLAP.total_seconds() // 3600)
        parser.add_argument(
            "--overlap-hours",
            type=arguments.whole,
            default=hours,
            help=f"how long both work; default {hours}",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        token = ApiToken.objects.select_related("user").filter(pk=options["token_id"]).first()
        if token is None:
            message = f"there is no token {options['token_id']}; the console lists them"
            raise CommandError(message, returncode=3)
        try:
            overlap = timedelta(hours=options["overlap_hours"])
            issued = access.rotate_token(token, overlap=overlap)
        except (ServiceError, OverflowError) as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(issued.raw)
