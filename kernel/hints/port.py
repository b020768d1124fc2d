"""Say what the engine may ask of hints, and nothing about where they are kept.

Guarantees of every implementation: times are int milliseconds since the epoch on the database
clock; the only error is `HintsUnavailable`; every call may be repeated; all are thread-safe.
Leaves to others: truth (kernel.store) and the decision what to do with a candidate (the engine).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneDepth:
    """What stands in one ready lane at one moment."""

    #: Members in all; `ready` of them are due, `delayed` are not yet.
    total: int
    ready: int
    delayed: int
    #: When the longest-waiting due member became due, ms since the epoch; None: nothing is due.
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a lane needs to know of an instance."""

    workflow_id: str
    priority: int
    at_ms: int


#: A claim's lease: workflow_id, claim_token, when it ends (ms since the epoch).
Lease = tuple[str, str, int]


class Hints(Protocol):
    """The four lanes, timers, leases and bells of each queue (design 2.1 to 2.3).

    Raises: `HintsUnavailable` from every method but `close`; what a call was to write may or may
    not be written, and nothing depends on it.
    """

    def push(self, queue: str, workflow_id: str, *, priority: int, at_ms: int) -> bool:
        """Put a workflow into its lane, or raise it: lower priority number, earlier time.

        True means that it stood in no lane before.
        On repeat: nothing changes; the order of several pushes does not matter.
        """

    def push_all(self, queue: str, candidates: Sequence[Candidate]) -> int:
        """Push many candidates as `push`, in one round trip; return how many stood in no lane."""

    def pop(self, queue: str) -> str | None:
        """Take the next due workflow_id by weighted round robin; None when nothing is due.

        On repeat: takes the next one. What a lost answer took, reconciliation finds again.
        """

    def pop_many(self, queue: str, count: int) -> list[Candidate]:
        """Take up to `count` (>= 1) due candidates as `pop` does, in one round trip."""

    def has_due(self, queue: str) -> bool:
        """Tell whether any lane of the queue has a due member."""

    def oldest_due_ms(self, queue: str) -> int | None:
        """Tell when the longest-waiting due member of all lanes became due; None: nothing is."""

    def is_next(self, queue: str, *, priority: int, at_ms: int) -> bool:
        """Tell whether nothing in the lanes would be taken before such a candidate."""

    def depth(self, queue: str) -> dict[int, LaneDepth]:
        """Count each lane, keyed by priority 0 to 3."""

    def put_timer(self, queue: str, workflow_id: str, *, at_ms: int) -> None:
        """Note when a waiting workflow is to be looked at; the earlier of two times wins.

        To move it later, `drop_timer` with the score that was read, then put the new time.
        On repeat: nothing changes.
        """

    def due_timers(self, queue: str, *, limit: int) -> list[tuple[str, int]]:
        """Show up to `limit` (>= 1) due timers as (workflow_id, score_ms), earliest first.

        They stay until they are dropped: a reader that dies hides nothing.
        """

    def drop_timer(self, queue: str, workflow_id: str, *, score_ms: int) -> None:
        """Remove a timer if it still has the score that was read. On repeat: nothing changes."""

    def drop_timers(self, queue: str, timers: Sequence[tuple[str, int]]) -> None:
        """Remove many timers as `drop_timer`, in one round trip; each as (workflow_id, score_ms).

        On repeat: nothing changes.
        """

    def put_lease(self, queue: str, workflow_id: str, token: str, *, expires_ms: int) -> None:
        """Note when a claim's lease ends; the later of two times wins, a lease only moves later.

        On repeat: nothing changes.
        """

    def note_claims(
        self, queue: str, claims: Sequence[Lease], *, ended: Sequence[tuple[str, str]] = ()
    ) -> bool:
        """Note when claims' leases end, as `put_lease`, and ring the bell if a candidate is due.

        The claimed leave the lanes, however they were found.
        True: it was silent, so this caller sends the wakeup. Forgets the leases of claims that
        have `ended`, as (workflow_id, token), along the way.
        On repeat: the leases stay, and the bell rings already.
        """

    def due_leases(self, queue: str, *, limit: int) -> list[tuple[str, str, int]]:
        """Show up to `limit` (>= 1) ended leases as (workflow_id, token, score_ms).

        They stay until they are dropped: a reader that dies hides nothing.
        """

    def drop_lease(self, queue: str, workflow_id: str, token: str, *, score_ms: int) -> None:
        """Remove a lease if it still has the score that was read. On repeat: nothing changes."""

    def drop_leases(self, queue: str, claims: Sequence[tuple[str, str]]) -> None:
        """Remove the leases of claims given back, as (workflow_id, token). On repeat: nothing."""

    def ring(self, queue: str) -> bool:
        """Set the queue's bell for 2 s; True: it was silent, so this caller sends the wakeup.

        On repeat: False while the bell rings.
        """

    def clear_bell(self, queue: str) -> None:
        """Silence the bell, so that the next ring sends a wakeup. On repeat: nothing changes."""

    def ring_from_tick(self, queue: str) -> bool:
        """Set the tick's own bell for 5 s; True: this caller sends the wakeup.

        On repeat: False while that bell rings.
        """

    def marker_present(self) -> bool:
        """Tell whether the lanes were built since Redis was last empty."""

    def set_marker(self) -> None:
        """Note that the lanes have been rebuilt. On repeat: nothing changes."""

    def close(self) -> None:
        """Let go of connections; never raises. On repeat: nothing changes."""
