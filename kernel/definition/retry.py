"""How often and how soon a failed step is tried again (design 1.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel.directives import Seconds, as_seconds
from kernel.errors import DefinitionError, InvalidValue

Backoff = Literal["none", "fixed", "exponential"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retries after the first attempt, their spacing in seconds, and errors that end it at once.

    `exponential` doubles `initial` with every failure up to `cap` and draws uniformly between 0
    and that bound (full jitter); `fixed` waits `initial`; `none` tries again at once.

    Raises:
        DefinitionError: a negative count, unknown backoff, or a delay that is no delay.
    """

    max_retry: int = 0
    backoff: Backoff = "exponential"
    initial: Seconds = 1
    cap: Seconds = 60
    non_retryable: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if (
            isinstance(self.max_retry, bool)
            or not isinstance(self.max_retry, int)
            or self.max_retry < 0
        ):
            raise DefinitionError(f"max_retry must be 0 or more, not {self.max_retry!r}")
        if self.backoff not in ("none", "fixed", "exponential"):
            raise DefinitionError(
                f"backoff must be none, fixed or exponential, not {self.backoff!r}"
            )
        try:
            initial, cap = (
                as_seconds(self.initial, what="initial"),
                as_seconds(self.cap, what="cap"),
            )
        except InvalidValue as exc:
            raise DefinitionError(f"retry policy: {exc}") from exc
        if self.backoff == "exponential" and cap < initial:
            raise DefinitionError("retry policy: cap must not be shorter than initial")
        object.__setattr__(self, "initial", initial)
        object.__setattr__(self, "cap", cap)
        if not isinstance(self.non_retryable, tuple) or not all(
            isinstance(each, type) and issubclass(each, BaseException)
            for each in self.non_retryable
        ):
            raise DefinitionError(
                "non_retryable must be a tuple of exception classes, e.g. (ValueError,)"
            )

    def delay_seconds(self, failures: int, *, jitter: float) -> float:
        """Return the wait after the `failures`-th failure (from 1); `jitter` is in [0, 1)."""
        initial, cap = as_seconds(self.initial, what="initial"), as_seconds(self.cap, what="cap")
        if self.backoff == "none":
            return 0.0
        if self.backoff == "fixed":
            return initial
        bound = min(cap, initial * 2.0 ** min(failures - 1, 60))
        return bound * jitter
