"""The states of a dispatch intent, and how a model says what its own statuses mean.

Guarantees: `StatusMapping` is all the protocol knows about a business status. Leaves to others:
which transition is legal when (`transitions`), and checking a mapping (`checks`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum


class DispatchStatus(StrEnum):
    """Where an intent stands; the drawing is in `jobs.dispatch`."""

    PENDING = "pending"
    PROCESSING = "processing"
    DISPATCHED = "dispatched"
    WITHDRAWING = "withdrawing"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"


#: States in which somebody still has to act; exactly these rows have a dispatch_next_at.
UNDELIVERED = (DispatchStatus.PENDING, DispatchStatus.PROCESSING, DispatchStatus.WITHDRAWING)

#: How long recovery leaves a fresh intent to the request path that wrote it.
REQUEST_GRACE = timedelta(seconds=2)
#: How long the request path may wait for the kernel, seconds.
REQUEST_TIMEOUT_SECONDS = 0.5
#: How long one dispatch claim lasts; renewed before each call to the kernel.
CLAIM_LEASE = timedelta(seconds=30)
#: How long recovery may wait for one call to the kernel, seconds.
RECOVERY_TIMEOUT_SECONDS = 10.0
#: Delay after the first failed attempt; doubles up to the cap. There is no last attempt.
BACKOFF_FIRST = timedelta(seconds=1)
BACKOFF_CAP = timedelta(minutes=10)
#: Delay while an older round still converges, or the instance's finalizer still runs.
BUSY_DELAY = timedelta(seconds=5)
#: No write puts the next turn of an intent off for longer.
NEXT_TURN_MAX = max(REQUEST_GRACE, CLAIM_LEASE, BACKOFF_CAP, BUSY_DELAY)
#: Characters kept of the last error, for people.
LAST_ERROR_CHARACTERS = 1000

assert CLAIM_LEASE.total_seconds() > RECOVERY_TIMEOUT_SECONDS
assert REQUEST_GRACE.total_seconds() > REQUEST_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMapping:
    """What the protocol has to know about a model's own status column."""

    #: Name of the status column.
    column: str = "status"
    #: The status a row is created with and a new round puts it back to.
    initial: str
    #: The one status from which a new round may start.
    failed: str
    #: The status a cancel writes.
    canceled: str
    #: Every status in which the round is over, `failed` and `canceled` among them.
    terminal: frozenset[str]
    #: Other columns that belong to a round, with the value a new round resets them to. Like the
    #: status they are written by the protocol only.
    cleared: Mapping[str, object] = field(default_factory=dict)
    #: Further columns no ordinary save may write, because an old copy would undo a decision.
    protected: frozenset[str] = frozenset()

    @property
    def guarded(self) -> frozenset[str]:
        """Business columns that only the protocol writes on an existing row."""
        return frozenset({self.column, *self.cleared, *self.protected})
