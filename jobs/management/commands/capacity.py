"""``manage.py capacity list|show|set|pause|resume|cooldown``: limits while work goes on.

Guarantees: what the API and the console can do to a resource, this can do without them; a change
names its reason and who made it; exit status 0 done, 2 wrong usage, 4 the store is away, 5 changed
by somebody else since the revision named. Leaves to others: limits (``kernel.capacity``).
"""

import getpass
import json
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.management import arguments, capacity_views, terminal
from jobs.resources import RESOURCES
from jobs.runtime import get_kernel
from kernel import KernelError, ResourceStatus, RevisionConflict, StoreUnavailable, UsageError

USAGE, UNAVAILABLE, CHANGED_MEANWHILE = 2, 4, 5

_LIST_MAX = 1000


class Command(BaseCommand):
    help = "Show what resources are in use and who waits for them, and change their limits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="list|show|set|pause|resume|cooldown"
        )
        verbs.add_parser("list", help="every resource, one line each")
        verbs.add_parser("show", help="limits, holders, the line, changes")
        change = verbs.add_parser("set", help="change limits; what is not named stays as it is")
        change.add_argument(
            "--max-concurrency", type=arguments.whole, metavar="N", help="0: unlimited"
        )
        change.add_argument(
            "--max-starts-per-second", type=arguments.number, metavar="R", help="0: unlimited"
        )
        change.add_argument(
            "--expires-in",
            type=arguments.above_zero,
            metavar="S",
            help="then the limits before hold again",
        )
        verbs.add_parser("pause", help="let nothing start")
        verbs.add_parser("resume", help="end a pause")
        rest = verbs.add_parser("cooldown", help="let nothing start for a while")
        rest.add_argument(
            "--seconds", type=arguments.number, required=True, metavar="S", help="0 ends a cooldown"
        )
        for name, verb in verbs.choices.items():
            if name != "list":
                verb.add_argument("resource", help="its name, such as content_generation")
            if name in {"list", "show"}:
                continue
            verb.add_argument("--reason", required=True, help="why; kept in the history")
            verb.add_argument(
                "--by", default="", help="who; the user of this terminal if not given"
            )
            verb.add_argument(
                "--if-revision",
                type=arguments.whole,
                metavar="N",
                help="only if nobody changed it since",
            )
        for verb in verbs.choices.values():
            verb.add_argument(
                "-o",
                "--output",
                choices=("table", "json"),
                help="default: table on a terminal, json otherwise",
            )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self._handle(options)
        except RevisionConflict as error:
            raise CommandError(str(error), returncode=CHANGED_MEANWHILE) from None
        except UsageError as error:
            raise CommandError(str(error), returncode=USAGE) from None
        except KernelError as error:
            said = terminal.unanswered(error) if isinstance(error, StoreUnavailable) else str(error)
            raise CommandError(said, returncode=UNAVAILABLE) from None

    def _handle(self, options: dict[str, Any]) -> None:
        capacity = get_kernel().capacity
        match options["verb"]:
            case "list":
                names = sorted({*RESOURCES, *capacity.resources()})
                self._list(capacity.statuses(names[:_LIST_MAX]), options["output"])
                if len(names) > _LIST_MAX:
                    more = len(names) - _LIST_MAX
                    self.stderr.write(f"… and {more} more behind {names[_LIST_MAX - 1]}")
            case "show":
                self._show(capacity.status(options["resource"]), options["output"])
            case "set":
                self._change(capacity.set_limit, options, **_limits(options))
            case "cooldown":
                self._change(capacity.cooldown, options, seconds=options["seconds"])
            case "pause":
                self._change(capacity.pause, options)
            case _:
                self._change(capacity.resume, options)

    def _change(
        self, change: Callable[..., ResourceStatus], options: dict[str, Any], **fields: Any
    ) -> None:
        reason = options["reason"].strip()
        if not reason:
            raise CommandError("--reason must say why", returncode=USAGE)
        status = change(
            options["resource"],
            reason=reason,
            by=options["by"].strip() or _somebody(),
            if_revision=options["if_revision"],
            **fields,
        )
        self._show(status, options["output"])

    def _list(self, found: list[ResourceStatus], output: str | None) -> None:
        if self._wants_json(output):
            self._write_json([one.model_dump(mode="json") for one in found])
        else:
            colour = terminal.wants_colour(self.stdout)
            self.stdout.write(capacity_views.listing(found, colour=colour))

    def _show(self, one: ResourceStatus, output: str | None) -> None:
        if self._wants_json(output):
            self._write_json(one.model_dump(mode="json"))
        else:
            colour = terminal.wants_colour(self.stdout)
            self.stdout.write(capacity_views.sheet(one, colour=colour))

    def _wants_json(self, output: str | None) -> bool:
        return output == "json" or (not output and not terminal.is_terminal(self.stdout))

    def _write_json(self, value: object) -> None:
        self.stdout.write(json.dumps(value, indent=2, default=str))


def _limits(options: dict[str, Any]) -> dict[str, Any]:
    """Give what `set` was told to change. Raises: CommandError when that is nothing."""
    named = {
        name: options[name]
        for name in ("max_concurrency", "max_starts_per_second")
        if options[name] is not None
    }
    if not named:
        raise CommandError(
            "give --max-concurrency, --max-starts-per-second or both", returncode=USAGE
        )
    return {**named, "expires_in": options["expires_in"]}


def _somebody() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user may have no name.
        return "terminal"
