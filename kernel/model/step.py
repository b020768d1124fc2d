"""One step of an instance: where it is, what it tried, what it waits for (design 1.3).

Guarantees that facts a newer version wrote are read without complaint, and none is changed in
place. Leaves to others: which transition writes what (`kernel.protocol`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Fact(BaseModel):
    """Base of all stored facts: immutable, tolerant of fields a newer version wrote."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class StepStatus(StrEnum):
    """Where a step is; completed, failed and skipped are left by a new round only."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Reason(StrEnum):
    """Why something does not move; a closed vocabulary (design 6.1)."""

    DEPENDENCY = "dependency"
    LANE_BACKLOG = "lane_backlog"
    PERMIT = "permit"
    RETRY_BACKOFF = "retry_backoff"
    TIMER = "timer"
    SIGNAL = "signal"
    NO_WORKER = "no_worker"
    INCOMPATIBLE_DEFINITION = "incompatible_definition"
    PAUSED = "paused"

    @property
    def is_traffic(self) -> bool:
        """A permit is waited for, whatever closes the resource."""
        return self in (Reason.PERMIT, Reason.PAUSED)


class Times(Fact):
    """The four kinds of time, in milliseconds: together they are the wall time."""

    scheduling_ms: int = 0
    traffic_ms: int = 0
    activity_ms: int = 0
    external_ms: int = 0


class Attempt(Times):
    """One entry into activity code: number, span, how it came home."""

    n: int
    from_: datetime = Field(alias="from")
    to: datetime
    outcome: str


class Resume(Fact):
    """What woke a step that had waited: `timer`, `signal` or `poll`."""

    kind: str
    signal_id: str | None = None


class BlockedOn(Fact):
    """What decides when something goes on; `until` is None when only an event can tell.

    `resources` are those that refused a permit, `needs` all that are needed at once; `since` is the
    place in the line and stays over repeated refusals.
    """

    reason: Reason
    resources: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    step: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    detail: str | None = None


class StepError(Fact):
    """An error as stored for people: code ≤ 64 characters, message ≤ 4 KiB."""

    code: str
    message: str
    step: str | None = None
    at: datetime | None = None


class StepState(Fact):
    """The stored state of one step.

    `seq` rises with every transition of the step and never falls, so that a late command matches
    nothing. `attempt` counts entries into activity code (directives give theirs back); `failures`
    those of this round that came home with an error; `recoveries` the deaths in a row. `place` is
    that in a line, of a step handed back between its permit and its entry.
    """

    status: StepStatus = StepStatus.PENDING
    seq: int = 0
    attempt: int = 0
    failures: int = 0
    recoveries: int = 0
    depends_on: tuple[str, ...] = ()
    not_before: datetime | None = None
    since: datetime | None = None
    place: datetime | None = None
    checkpoint: Any = None
    resume: Resume | None = None
    error: StepError | None = None
    blocked_on: BlockedOn | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: tuple[Attempt, ...] = ()
    times: Times = Times()
    lead: Times = Times()
    wait_count: int = 0
    woken_by: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Completed or skipped: what depends on it may run."""
        return self.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)
