"""`manage.py prepare`: bring the business database and the kernel's schema up to date.

Guarantees that it may run at every deploy, and on several machines at once as far as the databases
allow. With `--hints` it fills a new Redis from MongoDB, which the first tick does otherwise. With
`--access` it prints ready credentials as one JSON object: for development only.
Leaves the migrations to Django and the schema to `kernel.ensure_schema`.
"""

import dataclasses
import json
from argparse import ArgumentParser

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from jobs.runtime import close_kernel, get_kernel
from jobs.services.access import ensure_demo_access
from kernel import KernelError


class Command(BaseCommand):
    help = "Migrate the business database and ensure the kernel's schema (repeatable)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--hints", action="store_true", help="also build the hints of an empty Redis"
        )
        parser.add_argument(
            "--access",
            action="store_true",
            help="also ensure a user and a token, and print them as JSON (development only)",
        )

    def handle(self, *, hints: bool, access: bool, **_: object) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        try:
            get_kernel().ensure_schema()
            if hints:
                get_kernel().build_hints()
        except KernelError as problem:
            raise CommandError(str(problem)) from problem
        finally:
            close_kernel()
        if access:
            self.stdout.write(json.dumps(dataclasses.asdict(ensure_demo_access())))
