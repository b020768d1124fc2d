"""Stand in for Redis where there is none: everything works from polling MongoDB.

Guarantees: never raises, keeps nothing. Reads answer "nothing known here", with two exceptions:
`ring` and `ring_from_tick` answer True, since without a shared bell every caller sends its own
wakeup; `marker_present` answers True, since there are no lanes that could have been lost.
Leaves to others: finding candidates in the store (the engine, tick, reconcile).
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.hints.port import Candidate, LaneDepth, Lease


class NoHints:
    """The hints of a deployment with `redis_url=None` (design 2.4, 9)."""

    def push(self, queue: str, workflow_id: str, *, priority: int, at_ms: int) -> bool:  # noqa: ARG002
        """Keep nothing."""
        return False

    def push_all(self, queue: str, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002
        """Keep nothing."""
        return 0

    def pop(self, queue: str) -> str | None:  # noqa: ARG002 - the port's signature
        """Propose nobody."""
        return None

    def pop_many(self, queue: str, count: int) -> list[Candidate]:  # noqa: ARG002
        """Propose nobody."""
        return []

    def has_due(self, queue: str) -> bool:  # noqa: ARG002
        """Know of nothing due."""
        return False

    def oldest_due_ms(self, queue: str) -> int | None:  # noqa: ARG002
        """Know of nothing due."""
        return None

    def is_next(self, queue: str, *, priority: int, at_ms: int) -> bool:  # noqa: ARG002
        """Know of no order that could be kept."""
        return False

    def depth(self, queue: str) -> dict[int, LaneDepth]:  # noqa: ARG002
        """Count nothing: there are no lanes, which is not the same as empty ones."""
        return {}

    def put_timer(self, queue: str, workflow_id: str, *, at_ms: int) -> None:
        """Keep nothing."""

    def due_timers(self, queue: str, *, limit: int) -> list[tuple[str, int]]:  # noqa: ARG002
        """Know of no timer."""
        return []

    def drop_timer(self, queue: str, workflow_id: str, *, score_ms: int) -> None:
        """Keep nothing."""

    def drop_timers(self, queue: str, timers: Sequence[tuple[str, int]]) -> None:
        """Keep nothing."""

    def put_lease(self, queue: str, workflow_id: str, token: str, *, expires_ms: int) -> None:
        """Keep nothing."""

    def note_claims(
        self,
        queue: str,  # noqa: ARG002
        claims: Sequence[Lease],  # noqa: ARG002
        *,
        ended: Sequence[tuple[str, str]] = (),  # noqa: ARG002
    ) -> bool:
        """Keep nothing, know of nothing due."""
        return False

    def due_leases(self, queue: str, *, limit: int) -> list[tuple[str, str, int]]:  # noqa: ARG002
        """Know of no lease."""
        return []

    def drop_lease(self, queue: str, workflow_id: str, token: str, *, score_ms: int) -> None:
        """Keep nothing."""

    def drop_leases(self, queue: str, claims: Sequence[tuple[str, str]]) -> None:
        """Keep nothing."""

    def ring(self, queue: str) -> bool:  # noqa: ARG002
        """Let every caller send its wakeup: nobody else is known to have sent one."""
        return True

    def clear_bell(self, queue: str) -> None:
        """Keep nothing."""

    def ring_from_tick(self, queue: str) -> bool:  # noqa: ARG002
        """Let tick send its wakeup: nobody else is known to have sent one."""
        return True

    def marker_present(self) -> bool:
        """Report nothing lost, since nothing is kept."""
        return True

    def set_marker(self) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Hold nothing open."""
