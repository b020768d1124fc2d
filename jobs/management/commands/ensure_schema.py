"""``manage.py ensure_schema``: make the kernel's collections and indexes.

Guarantees: may run at any time, by any number of processes. On repeat: nothing changes.
Leaves to others: the business database (``manage.py migrate``).
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.runtime import get_kernel
from kernel import KernelError


class Command(BaseCommand):
    help = "Make the workflow store's collections and indexes; repeatable."

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            get_kernel().ensure_schema()
        except KernelError as error:
            raise CommandError(str(error)) from None
        self.stdout.write("The workflow store is ready.")
