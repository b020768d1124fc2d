"""`manage.py up` (`make up`): the whole product in this terminal until Ctrl-C.

Guarantees an orderly stop on Ctrl-C or SIGTERM and an immediate one on the second; see
`config.stack` for the order. Leaves what runs to `config.stack.services`.
"""

import signal
import threading
from argparse import ArgumentParser
from types import FrameType

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.embedded import EmbeddedServerError
from config.stack import Access, Stack, StackFailed, StackOptions, Supervisor, Terminal
from jobs.management import arguments
from kernel import KernelError

_READY_TIMEOUT = 90.0


class Command(BaseCommand):
    help = "Run servers, web, speech service, workers, beat and Flower here until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port",
            type=arguments.port,
            help="port of the API and console (8000, else a free one)",
        )
        parser.add_argument(
            "--flower-port", type=arguments.port, help="port of Flower (5555, else a free one)"
        )
        parser.add_argument("--no-flower", action="store_true", help="leave Flower out")
        parser.add_argument(
            "--concurrency", type=arguments.count, default=2, help="pool processes a work queue (2)"
        )

    def handle(
        self,
        *,
        port: int | None,
        flower_port: int | None,
        no_flower: bool,
        concurrency: int,
        **_: object,
    ) -> None:
        terminal = Terminal()
        options = StackOptions(
            data_dir=settings.BATON_DATA_DIR,
            web_port=port or None,
            flower_port=flower_port or None,
            flower=not no_flower,
            concurrency=concurrency,
        )
        stack = Stack(options, terminal=terminal)
        interrupted = _Interruptions()
        try:
            access = stack.prepare()
            supervisor = stack.supervisor()
            interrupted.steer(supervisor, terminal)
            announcing = threading.Thread(
                target=_announce, args=(stack, supervisor, access, terminal), daemon=True
            )
            announcing.start()
            supervisor.run()
        except (EmbeddedServerError, KernelError, StackFailed) as problem:
            raise CommandError(str(problem)) from problem
        except KeyboardInterrupt:
            terminal.say("interrupted while starting")
        finally:
            interrupted.shut_out()
            stack.close()
        terminal.say("everything has stopped")


class _Interruptions:
    """Turns Ctrl-C and SIGTERM into a stop, the second one into a kill.

    Before the supervisor exists they raise KeyboardInterrupt, so that a start can be given up. What
    is raised inside a finalizer of the interpreter is swallowed; such a one is heeded by `steer`.
    """

    def __init__(self) -> None:
        self._count = 0
        self._supervisor: Supervisor | None = None
        self._terminal: Terminal | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._arrived)

    def steer(self, supervisor: Supervisor, terminal: Terminal) -> None:
        """Send later interruptions to `supervisor`, and one that came to nothing before."""
        self._terminal = terminal
        self._supervisor = supervisor
        if self._count:
            supervisor.request_stop()

    def shut_out(self) -> None:
        """Ignore further interruptions: the servers are being stopped."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._supervisor is None:
            raise KeyboardInterrupt
        # Printing takes a lock that the interrupted thread may hold: say it from another thread.
        words = "stopping; once more kills" if self._count == 1 else "killing"
        if self._terminal is not None:
            threading.Thread(target=self._terminal.say, args=(words,), daemon=True).start()
        if self._count == 1:
            self._supervisor.request_stop()
        else:
            self._supervisor.request_kill()


def _announce(stack: Stack, supervisor: Supervisor, access: Access, terminal: Terminal) -> None:
    """Say where everything is as soon as everything is ready."""
    patience = threading.Event()
    waited = 0.0
    while unready := supervisor.unready():
        if waited >= _READY_TIMEOUT:
            terminal.say(f"still not ready after {waited:.0f} s: {', '.join(unready)}")
            return
        patience.wait(0.2)
        waited += 0.2
    user, _, password = stack.flower_auth.partition(":")
    lines = [
        "",
        terminal.strong("Baton is up."),
        f"  API      {stack.web_url}/api/v1/   (docs: {stack.web_url}/api/v1/docs)",
        f"  console  {stack.web_url}/ops/      user {access.username}, password {access.password}",
    ]
    if stack.options.flower:
        lines.append(f"  Flower   {stack.flower_url}/      user {user}, password {password}")
    lines += [
        f"  token    {access.token}   (tenant {access.tenant})",
        "  try      curl -sS -X POST -H 'Content-Type: application/json' \\",
        f"             -H 'Authorization: Bearer {access.token}' \\",
        '             -d \'{"kind": "article", "source_url": "https://example.com/"}\' \\',
        f"             {stack.web_url}/api/v1/jobs",
        "  stop     Ctrl-C",
        "",
    ]
    terminal.say("\n".join(lines))
