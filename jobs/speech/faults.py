"""Faults the speech service shows on demand, so that its clients' patience can be tried.

Guarantees: none of them is on unless the process was started with `--faults` and told so. Leaves to
others: the calls that switch them (`server`).
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


class BadFault(Exception):
    """The switch does not exist or cannot have that value."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """What goes wrong at the moment, and what was asked of the service so far."""

    #: Seconds each recognition takes at least.
    slow_seconds: float = 0.0
    #: How many of the next calls are answered 500.
    errors: int = 0
    #: Treat every submission as a new one, whatever its key.
    forget_keys: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def switch(self, wanted: Mapping[str, object]) -> None:
        """Set the named faults and leave the others. Raises: BadFault."""
        with self._lock:
            for name, value in wanted.items():
                if name not in ("slow_seconds", "errors", "forget_keys"):
                    raise BadFault(f"there is no fault {name!r}")
                kind = type(getattr(self, name))
                if not isinstance(value, int | float) or value < 0:
                    raise BadFault(f"{name} is a number of zero or more, or a truth value")
                setattr(self, name, kind(value))

    def count(self, what: str) -> None:
        """Remember that something was asked."""
        with self._lock:
            self.asked[what] += 1

    def fails_now(self) -> bool:
        """Use up one of the errors that were ordered; tells whether there was one."""
        with self._lock:
            if not self.errors:
                return False
            self.errors -= 1
            return True

    def report(self) -> dict[str, object]:
        """Say what is switched and what was asked."""
        with self._lock:
            return {
                "slow_seconds": self.slow_seconds,
                "errors": self.errors,
                "forget_keys": self.forget_keys,
                "asked": dict(self.asked),
            }
