"""``manage.py webhook_secret TENANT``: show the secret a tenant checks webhook signatures with.

Guarantees: only the secret goes to standard output; asking changes nothing. Leaves to others: how
it is derived (``jobs.notifying.signing``).
"""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs.management import arguments
from jobs.notifying.signing import tenant_secrets
from jobs.services import access
from jobs.services.errors import ServiceError


class Command(BaseCommand):
    help = "Show the secret with which a tenant checks the signatures of webhooks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", type=arguments.word, help="slug of the tenant")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            access.check_token(tenant=options["tenant"], expires_at=None)
        except ServiceError as error:
            raise CommandError(str(error), returncode=2) from None
        (secret,) = tenant_secrets(options["tenant"], [settings.SECRET_KEY])
        self.stdout.write(secret)
