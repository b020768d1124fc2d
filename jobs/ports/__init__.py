"""The outside world as `jobs` sees it: what an activity may ask for, and how it can go wrong.

Guarantees: an activity needs these names only, so a network, a model or a demo can stand behind
them. Every failure is one of three kinds: `PortRefused` (final, a `NonRetryable`), `FailedForNow`
(worth another attempt, perhaps after `retry_after` seconds) and `PortCancelled` (the caller asked
to stop). Leaves to others: the adapters (`jobs.fetching`, `jobs.composing`), and when to retry
(the step's policy). Design 7.
"""

from jobs.ports.bounds import Bounds, StopSign
from jobs.ports.composition import Composer, Composition
from jobs.ports.errors import (
    ComposeFailedForNow,
    ComposeRefused,
    FailedForNow,
    FetchFailedForNow,
    FetchRefused,
    PortCancelled,
    PortRefused,
)
from jobs.ports.pages import Page, PageSource

__all__ = [
    "Bounds",
    "ComposeFailedForNow",
    "ComposeRefused",
    "Composer",
    "Composition",
    "FailedForNow",
    "FetchFailedForNow",
    "FetchRefused",
    "Page",
    "PageSource",
    "PortCancelled",
    "PortRefused",
    "StopSign",
]
