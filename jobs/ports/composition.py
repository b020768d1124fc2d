"""The composition port: a long text becomes a short one.

Guarantees: the pieces given to `on_text`, joined, are the summary as it was produced.
Leaves to others: keeping the result (a repeat may produce, and pay for, another one).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jobs.ports.bounds import StopSign


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A finished summary."""

    title: str
    summary: str
    sentences: list[str]
    #: Words of the text that was summarised; each CJK character counts as one.
    source_words: int
    #: What wrote it: "extractive" or the model's name.
    model: str


class Composer(Protocol):
    """Whoever can summarise."""

    def compose(
        self,
        text: str,
        *,
        title: str,
        max_sentences: int,
        deadline: float | None = None,
        cancelled: StopSign | None = None,
        on_text: Callable[[str], None] | None = None,
        idempotency_key: str | None = None,
    ) -> Composition:
        """Summarise `text` in at most `max_sentences` sentences, streaming through `on_text`.

        `deadline` is a `time.monotonic()` moment; `idempotency_key` lets a provider recognise a
        repeat of the same request (`ctx.idempotency_key`).
        Raises: ComposeRefused, ComposeFailedForNow, PortCancelled; ValueError when
        `max_sentences` is below 1. On repeat: streams from the start again.
        """
        ...
