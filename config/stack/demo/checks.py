"""Claims of the demonstration: what does not hold ends it.

Guarantees that waiting is bounded. Leaves the claims to `acts`.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_EVERY = 0.1
_pause = threading.Event()


class DemoFailed(Exception):
    """Something the demonstration promised did not happen; the message says what."""


def insist(holds: object, otherwise: str) -> None:
    """Go on only if `holds`. Raises: DemoFailed with `otherwise`."""
    if not holds:
        raise DemoFailed(otherwise)


def await_that(look: Callable[[], T | None], *, seconds: float, otherwise: str) -> T:
    """Return the first answer of `look` that is not None or false. Raises: DemoFailed."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := look():
            return answer
        if time.monotonic() >= deadline:
            raise DemoFailed(f"{otherwise} (waited {seconds:g} s)")
        _pause.wait(_LOOK_EVERY)
