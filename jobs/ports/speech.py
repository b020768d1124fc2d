"""The speech port: a recording becomes text, by somebody who takes a while.

A provider is asked twice: `submit` hands the recording over and gets a task id, `query` asks how
that task stands. Between the two nothing of the process is kept (design 4). A provider that answers
at once says so in what `submit` returns.

Guarantees: a task is always asked for at the provider that gave its id, found by the *stored* name.
Leaves to others: when to ask (`jobs.activities.speech`), and the adapters (`jobs.speech`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from jobs.ports.bounds import StopSign
from jobs.ports.errors import SpeechRefused


class SpeechState(StrEnum):
    """How a task stands at its provider."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: The provider does not know the id: it lost the task, or forgot it after its time.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechTask:
    """One task as its provider describes it."""

    task_id: str
    state: SpeechState
    #: The transcript; only a succeeded task has one, and it may be empty (silence).
    text: str = ""
    #: Why a failed task failed, for people.
    reason: str = ""


class SpeechProvider(Protocol):
    """Whoever can turn speech into text."""

    def submit(
        self,
        audio: bytes,
        *,
        language: str | None,
        idempotency_key: str,
        callback_url: str | None = None,
        deadline: float | None = None,
        cancelled: StopSign | None = None,
    ) -> SpeechTask:
        """Hand a recording over. On repeat with the same key: the same task, where it is honoured.

        `deadline` is a `time.monotonic()` moment; `callback_url` may be rung at the task's end.
        Raises: SpeechRefused, SpeechFailedForNow, PortCancelled.
        """
        ...

    def query(
        self, task_id: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> SpeechTask:
        """Ask how a task stands; reads only. A task nobody knows is an answer, not an error.

        Raises: SpeechRefused, SpeechFailedForNow, PortCancelled.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechTerms:
    """How a submitted task is followed; frozen into its checkpoint when it is submitted."""

    #: Seconds between two questions.
    interval: float = 3.0
    #: Seconds after which the step gives the task up.
    deadline: float = 3600.0
    #: Seconds for which the provider remembers a task's result.
    task_ttl: float = 86_400.0
    #: Questions in a row that may fail before the step gives up.
    tolerance: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechDesk:
    """The providers by name, the one new recordings go to, and the terms."""

    providers: Mapping[str, SpeechProvider]
    default: str
    terms: SpeechTerms = field(default_factory=SpeechTerms)

    def provider(self, name: str) -> SpeechProvider:
        """Return a provider by the name a task was stored under.

        Raises: SpeechRefused, code bad_setting, when it is not configured here any more.
        """
        try:
            return self.providers[name]
        except KeyError:
            raise SpeechRefused(
                f"The recording was given to the speech provider {name!r}, which is not configured"
                f" here; known are {sorted(self.providers)}.",
                code="bad_setting",
            ) from None
