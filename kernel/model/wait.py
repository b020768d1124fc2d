"""A stored wait: what would wake a suspended step (design 4)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kernel.model.step import Fact


class WaitKind(StrEnum):
    """By time alone, or by a signal (perhaps with a poll time as second way)."""

    TIMER = "timer"
    SIGNAL = "signal"


class Wait(Fact):
    """One step's wait; matching of signals is on (signal_type, wait_key, generation)."""

    step: str
    kind: WaitKind
    signal_type: str | None = None
    wait_key: str | None = None
    generation: int = 0
    poll_time: datetime | None = None
    since: datetime | None = None
