"""The outside world as `jobs` sees it: what an activity may ask for, and how it can go wrong.

Guarantees: an activity needs these names only, so a network, a model or a demo can stand behind
them. Every failure is one of three kinds: `PortRefused` (final, a `NonRetryable`), `FailedForNow`
(worth another attempt, perhaps after `retry_after` seconds) and `PortCancelled` (the caller asked
to stop). Leaves to others: the adapters (`jobs.fetching`, `jobs.composing`,
`jobs.speech`), and when to retry
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
    SpeechFailedForNow,
    SpeechRefused,
)
from jobs.ports.pages import Page, PageSource
from jobs.ports.recordings import Recording, RecordingSource
from jobs.ports.speech import SpeechDesk, SpeechProvider, SpeechState, SpeechTask, SpeechTerms

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
    "Recording",
    "RecordingSource",
    "SpeechDesk",
    "SpeechFailedForNow",
    "SpeechProvider",
    "SpeechRefused",
    "SpeechState",
    "SpeechTask",
    "SpeechTerms",
    "StopSign",
]
