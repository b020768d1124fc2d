"""What an activity may return instead of a result: wait, or let others go first (design 4).

Directives are values. Returning one ends the activity; nothing of the process is kept, the
attempt is given back, and `checkpoint` (any JSON value, at most `limits.CHECKPOINT_BYTES`) is what
the next call finds in `ctx.checkpoint`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from kernel import limits
from kernel.errors import InvalidValue

Seconds = int | float | timedelta


def as_seconds(value: Seconds, *, what: str) -> float:
    """Return a delay as float seconds.

    Raises:
        InvalidValue: not a number, negative, not finite, or longer than a year.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue("give seconds as a number or a timedelta", what=what)
    # Whole numbers are finite, and may be too large to be asked.
    if not (isinstance(value, int) or math.isfinite(value)) or value < 0:
        raise InvalidValue("must be zero or more seconds, and finite", what=what)
    if value > limits.DELAY_SECONDS_MAX:
        raise InvalidValue(
            f"must be at most {limits.DELAY_SECONDS_MAX} seconds (a year)", what=what
        )
    return float(value)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Call this step again after `delay` seconds; `ctx.resume` will say `timer`."""

    delay: Seconds
    checkpoint: object = None


@dataclass(frozen=True, slots=True)
class WaitForSignal:
    """Call this step again when a matching signal arrives, or after `poll_after` seconds.

    Matching is on workflow_id, `signal_type`, `wait_key` and `generation` (0 if none).
    """

    signal_type: str
    wait_key: str
    generation: int = 0
    poll_after: Seconds | None = None
    checkpoint: object = None


@dataclass(frozen=True, slots=True)
class Yield:
    """Call this step again soon, after others had their turn."""

    checkpoint: object = None


Directive = Sleep | WaitForSignal | Yield
