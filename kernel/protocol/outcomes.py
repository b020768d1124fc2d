"""How a call of an activity can end, as one closed set of values (design 1.5).

`invoke` is the only producer; the transitions of `kernel.protocol.homecoming` are the only reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel.directives import Directive


@dataclass(frozen=True, slots=True)
class Completed:
    """The activity returned a JSON value of `size_bytes`."""

    output: object
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Directed:
    """The activity returned a directive."""

    directive: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The activity raised, timed out, or returned something that cannot be kept.

    `code` and `message` are already cut to their limits and encodable. `retryable` says whether the
    retry policy may be asked; `keeps_checkpoint` is true for a timeout.
    """

    code: str
    message: str
    retryable: bool = True
    keeps_checkpoint: bool = False
    name: str = "failed"


@dataclass(frozen=True, slots=True)
class Canceled:
    """The activity said that this work should not go on."""

    message: str


Outcome = Completed | Directed | Failed | Canceled

#: Error code of a step whose activity canceled the workflow; the stored fact that decides its end.
CANCELED_CODE = "workflow_canceled"
#: Error code of a step whose process died too often in a row.
WORKER_LOST_CODE = "worker_lost"


def encodable(text: str, *, limit_bytes: int) -> str:
    """Return text that every store can hold: no lone surrogates, cut to `limit_bytes`."""
    data = text.encode("utf-8", errors="backslashreplace")
    if len(data) <= limit_bytes:
        return data.decode()
    return data[: limit_bytes - 3].decode(errors="ignore") + "…"
