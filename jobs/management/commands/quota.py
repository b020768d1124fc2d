"""``manage.py quota show|set|check``: tenants' limits and what is used of them.

Guarantees: `check` changes nothing and ends with status 1 when counters and ledger differ. Leaves
to others: the rules (``jobs.services.quota``).
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.counted import counted
from jobs.management import arguments, terminal
from jobs.services import access, quota
from jobs.services.errors import ServiceError


class Command(BaseCommand):
    help = "Show and set how many rounds a tenant may have reserved and settled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("show", help="show one tenant, or all")
        show.add_argument("tenant", type=arguments.word, nargs="?", help="slug of the tenant")
        change = verbs.add_parser("set", help="set or lift a tenant's limit")
        change.add_argument("tenant", type=arguments.word, help="slug of the tenant")
        limit = change.add_mutually_exclusive_group(required=True)
        limit.add_argument(
            "--limit", type=arguments.whole, help="rounds reserved and settled together"
        )
        limit.add_argument("--unlimited", action="store_true")
        verbs.add_parser("check", help="compare the counters with the ledger")

    def handle(self, *_: Any, **options: Any) -> None:
        match options["verb"]:
            case "show":
                named = options["tenant"]
                self._show([quota.standing_of(named)] if named else quota.standings())
            case "set":
                self._set(options["tenant"], options["limit"])
            case _:
                self._check()

    def _show(self, standings: list[quota.Standing]) -> None:
        rows = [
            [
                one.tenant,
                "unlimited" if one.limit is None else one.limit,
                one.reserved,
                one.settled,
                "unlimited" if one.available is None else one.available,
            ]
            for one in standings
        ]
        headers = ("TENANT", "LIMIT", "RESERVED", "SETTLED", "AVAILABLE")
        colour = terminal.wants_colour(self.stdout)
        self.stdout.write(terminal.table(headers, rows, colour=colour))

    def _set(self, tenant: str, limit: int | None) -> None:
        try:
            access.check_token(tenant=tenant, expires_at=None)
            standing = quota.set_limit(tenant, limit)
        except (ServiceError, ValueError) as error:
            raise CommandError(str(error), returncode=2) from None
        self._show([standing])

    def _check(self) -> None:
        found = quota.differences()
        for one in found:
            self.stdout.write(
                f"{one.tenant}: counted {one.counters[0]} reserved and {one.counters[1]} settled, "
                f"the ledger says {one.entries[0]} and {one.entries[1]}"
            )
        if found:
            said = f"{counted(len(found), 'tenant')} with counters that differ from the ledger"
            raise CommandError(said, returncode=1)
        self.stdout.write("Counters and ledger agree.")
