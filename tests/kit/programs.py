"""How the programs that prove something begin and end, beside what they prove.

Guarantees that a proof of nothing (no schedule, no second, no slot) is refused with status 2 and a
line that says what to write; that Ctrl-C, SIGTERM and SIGHUP end a program with status 130 and
without a driver's traceback, after what it started has been stopped. Leaves the last line, and the
status of a violation, to the program.
"""

import signal
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Final, NoReturn

from jobs.management.arguments import above_zero, number, whole

__all__ = ["above_zero", "counted", "number", "run", "say"]

_INTERRUPTED: Final = 130


def counted(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number between these two."""

    def read(text: str) -> int:
        value = whole(text)
        if value < least or (most is not None and value > most):
            bounds = f"{least} or more" if most is None else f"{least} to {most}"
            raise ArgumentTypeError(f"{value} is not {bounds}")
        return value

    return read


def run(main: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its status; ended from outside, say that it proved nothing."""
    for number_ in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number_, _interrupt)
    try:
        status = main()
    except KeyboardInterrupt:
        say("interrupted: nothing is proved")
        status = _INTERRUPTED
    sys.exit(status)


def say(line: str) -> None:
    """Print a line at once, so that whoever waits sees it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
