"""Hints that lie: they propose the instance whether it is due or not, and lose all they are told.

Guarantees that whatever works with them works without any hint being right (I3). Leaves what is
proposed to the schedule.
"""

from kernel.hints import Candidate, NoHints

#: How often one schedule's lane proposes its instance before it is empty.
_PROPOSALS = 3


class Rumours:
    """Lanes, timers and leases of a Redis that knows nothing and says something."""

    def __init__(self, workflow_ids: list[str]) -> None:
        self._workflow_ids = workflow_ids
        self._lane = workflow_ids * _PROPOSALS
        self._silent = NoHints()

    def __getattr__(self, name: str) -> object:
        """Everything else answers as if there were no Redis."""
        return getattr(self._silent, name)

    def pop(self, queue: str) -> str | None:
        """Propose an instance, due or not."""
        return self._lane.pop() if self._lane else None

    def pop_many(self, queue: str, count: int) -> list[Candidate]:
        """Propose several, one of them more than once."""
        found = [self.pop(queue) for _ in range(count)]
        return [Candidate(one, 1, 0) for one in found if one is not None]

    def is_next(self, queue: str, *, priority: int, at_ms: int) -> bool:
        """Say that nobody would be overtaken."""
        return True

    def due_timers(self, queue: str, *, limit: int) -> list[tuple[str, int]]:
        """Say that every wait is due."""
        return [(workflow_id, 0) for workflow_id in self._workflow_ids]

    def due_leases(self, queue: str, *, limit: int) -> list[tuple[str, str, int]]:
        """Say that every lease has ended, of a claim that never was."""
        return [(workflow_id, "nobody's", 0) for workflow_id in self._workflow_ids]
