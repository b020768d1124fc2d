"""``manage.py workflows list|show|why``: where is it, why, and since when.

Guarantees: reads only; exit status 0 done, 2 wrong usage, 3 no such workflow, 4 the store is away.
Leaves to others: changing anything (console, services).
"""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.management import arguments, terminal, workflow_views
from jobs.models import ContentJob
from jobs.runtime import get_kernel
from kernel import KernelError, NotFound, StoreUnavailable, UsageError, WorkflowInstance

USAGE, NOT_FOUND, UNAVAILABLE = 2, 3, 4

_STATUSES = ("running", "waiting", "failing", "completed", "failed", "canceled")
_LIMIT_MAX = 1000


class Command(BaseCommand):
    help = "List workflows, show one with its attempts, or say why it does not move."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|why")
        listing = actions.add_parser("list", help="the newest first")
        listing.add_argument("--status", choices=_STATUSES)
        listing.add_argument(
            "--type", type=arguments.word, help="workflow type, such as content.article"
        )
        listing.add_argument("--limit", type=arguments.whole, default=50, help="rows (default 50)")
        show = actions.add_parser("show", help="header, steps, attempts, times")
        why = actions.add_parser("why", help="one sentence from stored facts")
        for one in (show, why):
            one.add_argument("which", type=arguments.word, help="workflow_id, biz_key or job id")
        for each in (listing, show, why):
            each.add_argument(
                "-o",
                "--output",
                choices=("table", "json"),
                help="default: table on a terminal, json otherwise",
            )

    def handle(self, *_: Any, **options: Any) -> None:
        output = options["output"]
        self.as_json = output == "json" or (not output and not terminal.is_terminal(self.stdout))
        self.colour = terminal.wants_colour(self.stdout)
        handler = {"list": self._list, "show": self._show, "why": self._why}[options["action"]]
        try:
            handler(options)
        except NotFound as error:
            raise CommandError(str(error), returncode=NOT_FOUND) from None
        except UsageError as error:
            raise CommandError(str(error), returncode=USAGE) from None
        except KernelError as error:
            said = terminal.unanswered(error) if isinstance(error, StoreUnavailable) else str(error)
            raise CommandError(said, returncode=UNAVAILABLE) from None

    def _list(self, options: dict[str, Any]) -> None:
        limit = options["limit"]
        if not 1 <= limit <= _LIMIT_MAX:
            raise CommandError(f"--limit is a number from 1 to {_LIMIT_MAX}", returncode=USAGE)
        found: Sequence[WorkflowInstance] = get_kernel().list_instances(
            status=options["status"], type=options["type"], limit=limit
        )
        if self.as_json:
            self._write_json([_plain(instance) for instance in found])
        else:
            self.stdout.write(workflow_views.listing(found, colour=self.colour))

    def _show(self, options: dict[str, Any]) -> None:
        instance = self._find(options["which"])
        if self.as_json:
            self._write_json(_plain(instance))
        else:
            self.stdout.write(workflow_views.sheet(instance, colour=self.colour))

    def _why(self, options: dict[str, Any]) -> None:
        instance = self._find(options["which"])
        explanation = get_kernel().why(instance.workflow_id)
        if self.as_json:
            self._write_json(asdict(explanation))
        else:
            self.stdout.write(terminal.printable(explanation.sentence))

    def _find(self, which: str) -> WorkflowInstance:
        """Look the name up as workflow_id, then job id, then biz_key. Raises: NotFound."""
        if which.startswith("wf_"):
            return get_kernel().get(which)
        known = ContentJob.objects.filter(pk=which).values_list("dispatch_biz_key", flat=True)
        biz_key = known.first() or which
        instance = get_kernel().find(biz_key=biz_key)
        if instance is None:
            raise NotFound(f"no workflow, job or biz_key is named {terminal.printable(which)!r}")
        return instance

    def _write_json(self, value: object) -> None:
        self.stdout.write(json.dumps(value, indent=2, default=str))


def _plain(instance: WorkflowInstance) -> dict[str, Any]:
    return instance.model_dump(mode="json", by_alias=True)
