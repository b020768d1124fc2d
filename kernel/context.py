"""What activity and finalizer code sees of its workflow (design 9).

A context is built anew for every call and is only valid during it. It offers facts, cancellation
and ports; it has no way to write workflow state.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kernel import limits
from kernel.directives import Seconds, as_seconds
from kernel.errors import StepTimeout, WorkflowCanceled
from kernel.json_values import check_json
from kernel.model import Resume

log: Final = logging.getLogger("baton.activity")


class Cancellation:
    """A `threading.Event`-like flag that also says why: `timeout`, `claim lost`, `canceled`."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self.reason: str | None = None

    def is_set(self) -> bool:
        """Tell whether the call should end."""
        return self._event.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the flag; returns whether it is set."""
        return self._event.wait(timeout)

    def set(self, reason: str) -> None:
        """Ask the call to end; listeners cannot stop that. On repeat: the first reason stays."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()
            for listener in self._listeners:
                _heard(listener)

    def on_set(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the flag is set, at once if it already is."""
        self._listeners.append(listener)
        if self._event.is_set():
            _heard(listener)


def _heard(listener: Callable[[], None]) -> None:
    """Call a listener, which may be activity code's, in a thread that watches over other calls."""
    try:
        listener()
    except Exception:
        log.exception("a listener to a cancellation failed")


class NoStream:
    """A stream that accepts and drops: progress is never needed for a right result (design 5)."""

    def text(self, text: str) -> None:
        """Drop a piece of text."""

    def progress(self, **values: object) -> None:
        """Drop a progress report."""

    def event(self, name: str, **values: object) -> None:
        """Drop an event."""


class ActivityCapacity:
    """Capacity as an activity may influence it."""

    def __init__(self, cool_down: Callable[[str, int], None] | None = None) -> None:
        self._cool_down = cool_down

    def cooldown(self, resource: str, seconds: Seconds) -> None:
        """Let nothing start on a resource for a while, e.g. after a 429 with its Retry-After.

        A longer cooldown in force stays. What runs goes on, this call too.

        Raises:
            InvalidValue: no resource name, or no time.
            StoreUnavailable: not known; repeating is safe.
            Unreadable: this version does not know what stands in the resource.
        """
        for_ms = math.ceil(1000 * as_seconds(seconds, what="cooldown"))
        if self._cool_down is not None and for_ms:
            self._cool_down(resource, for_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityContext:
    """One call of one step's activity.

    `attempt` counts from 1 and is not used up by waiting. `deadline` is in `time.monotonic()`
    seconds. `checkpoint` is what the last directive stored, `resume` what woke the step.
    """

    workflow_id: str
    biz_key: str
    fencing_token: int
    step: str
    attempt: int
    input: Any
    outputs: Mapping[str, Any]
    checkpoint: Any
    resume: Resume | None
    deadline: float
    cancelled: Cancellation
    ports: Any
    #: What the definition's `prepare_context` returned, once per claim.
    prepared: Any = None
    stream: NoStream = field(default_factory=NoStream)
    capacity: ActivityCapacity = field(default_factory=ActivityCapacity)
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(log, {})
    )

    def output(self, step: str) -> Any:
        """Return a completed step's output; None where it was skipped or has not completed."""
        return self.outputs.get(step)

    @property
    def seconds_left(self) -> float:
        """Seconds until this call's timeout, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def raise_if_cancelled(self) -> None:
        """End the call if it should end; call it between pieces of work.

        Raises:
            StepTimeout: the timeout has passed or the claim was lost; what is returned or raised
                after that is not stored as success.
            WorkflowCanceled: a sibling's activity canceled the workflow.
        """
        if self.cancelled.is_set():
            if self.cancelled.reason == "canceled":
                raise WorkflowCanceled("a sibling step canceled the workflow")
            raise StepTimeout(f"the call was cancelled: {self.cancelled.reason}")

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt of this round: for calls that must not happen twice in it."""
        return _key(self.workflow_id, str(self.fencing_token), self.step)

    @property
    def operation_key(self) -> str:
        """The same in every round: for calls that even a user's retry must not pay twice."""
        return _key(self.workflow_id, self.step)

    def check(self, value: object) -> None:
        """Raise InvalidValue now if `value` could not be stored as a checkpoint.

        Call it before submitting something outside whose id goes into the checkpoint.
        """
        check_json(value, limit_bytes=limits.CHECKPOINT_BYTES, what=f"checkpoint of {self.step}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizerContext:
    """One call of a finalizer: what the workflow was asked, what it did, how it failed.

    `outputs` maps completed steps to their outputs; `error` is `{step, code, message}` in a failure
    finalizer and None in a success finalizer. No directives, no permits.
    """

    workflow_id: str
    biz_key: str
    fencing_token: int
    input: Any
    outputs: Mapping[str, Any]
    error: Mapping[str, Any] | None
    attempt: int
    deadline: float
    cancelled: Cancellation
    ports: Any
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(log, {})
    )


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:40]
