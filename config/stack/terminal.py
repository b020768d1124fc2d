"""Print the lines of many processes, each under its name, to one terminal.

Guarantees that lines of different threads do not mix and that colours appear only on a terminal
and without NO_COLOR. A terminal that went away ends nothing. Leaves what is printed to the callers.
"""

import contextlib
import os
import sys
import threading
from typing import TextIO

_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)
_WIDTH = 9


class Terminal:
    """Where the stack talks to people."""

    def __init__(self, stream: TextIO | None = None, *, quiet_children: bool = False) -> None:
        self._stream = stream or sys.stdout
        self._quiet_children = quiet_children
        self._lock = threading.Lock()
        self._colours: dict[str, int] = {}
        self.coloured = self._stream.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str = "") -> None:
        """Print the stack's own words."""
        self._print(text)

    def line(self, name: str, text: str) -> None:
        """Print one line of the process `name`, unless children are to be quiet."""
        if not self._quiet_children:
            self._print(f"{self._prefix(name)} {text}")

    def event(self, name: str, text: str) -> None:
        """Print what happened to the process `name`, quiet or not."""
        self._print(f"{self._prefix(name)} {self.strong(text)}")

    def strong(self, text: str) -> str:
        """Return `text` in bold where there are colours."""
        return f"\x1b[1m{text}\x1b[0m" if self.coloured else text

    def _prefix(self, name: str) -> str:
        label = f"{name:<{_WIDTH}} |"
        if not self.coloured:
            return label
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{label}\x1b[0m"

    def _print(self, text: str) -> None:
        # A closed pipe (`make up | head`) must not keep the children from being stopped.
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(text + "\n")
            self._stream.flush()
