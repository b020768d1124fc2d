"""`manage.py demo` (`make demo`): real jobs, a killed worker, and the proof that nothing was lost.

Guarantees that the last line is `demo: ok` with exit status 0, or `demo: FAILED: ` with the reason
and exit status 1. Leaves the play to `config.stack.demo`.
"""

import signal
import sys
from argparse import ArgumentParser
from types import FrameType

from django.core.management.base import BaseCommand

from config.embedded import EmbeddedServerError
from config.stack import StackFailed, Terminal
from config.stack.demo import DemoFailed, play
from kernel import KernelError

#: After what an interruption that was eaten comes again.
_AGAIN_SECONDS = 0.01


class Command(BaseCommand):
    help = "Run real jobs on a stack of their own, kill a worker, show that nothing is lost."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--logs", action="store_true", help="show the processes' own lines too")

    def handle(self, *, logs: bool, **_: object) -> None:
        terminal = Terminal(quiet_children=not logs)
        heed_interruptions()
        try:
            play(terminal)
        except KeyboardInterrupt:
            failure = "interrupted"
        except (DemoFailed, StackFailed, EmbeddedServerError, KernelError) as problem:
            failure = str(problem)
        else:
            terminal.say("demo: ok")
            return
        terminal.say(f"demo: FAILED: {failure}")
        sys.exit(1)


def heed_interruptions() -> None:
    """Let SIGTERM raise KeyboardInterrupt, and again if a finalizer of the interpreter ate it."""
    tell = sys.unraisablehook

    def eaten(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            tell(unraisable)

    sys.unraisablehook = eaten
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
