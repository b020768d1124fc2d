"""Wait for a condition, bounded, instead of sleeping for a guessed time.

Guarantees a failure that says what was awaited and what was last seen. Leaves the meaning of the
condition to the caller.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: How often a condition is looked at, in seconds.
_INTERVAL = 0.02


def eventually(
    predicate: Callable[[], T],
    timeout: float = 10.0,
    message: str = "the condition never held",
    *,
    interval: float = _INTERVAL,
) -> T:
    """Return the first truthy answer of `predicate`, asked until `timeout` seconds have passed.

    An AssertionError raised by the predicate counts as "not yet". Raises: AssertionError with
    `message` and the last answer.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            answer = predicate()
        except AssertionError as not_yet:
            last = not_yet
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() >= deadline:
            raise AssertionError(f"{message} (waited {timeout:g} s, last seen: {last!r})")
        time.sleep(interval)


def never(
    predicate: Callable[[], object],
    during: float,
    message: str = "it happened",
    *,
    interval: float = _INTERVAL,
) -> None:
    """Check that `predicate` stays falsy for `during` seconds. Raises: AssertionError."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        seen = predicate()
        assert not seen, f"{message}: {seen!r}"
        time.sleep(interval)
