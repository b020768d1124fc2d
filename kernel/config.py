"""How a host sets the kernel up; every field has a default that is right for production."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from kernel import limits
from kernel.directives import Seconds, as_seconds
from kernel.errors import InvalidValue, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelConfig:
    """Where facts and hints live, how long a claim holds, how the host is woken.

    `lease` and `hang_grace` are seconds. `ring(queue)` is how the host wakes its workers (Celery);
    None means nobody. `around_activity` wraps every call of activity code in its thread, e.g. to
    close stale database connections. `types_off` are workflow types not executed here.
    `clock_offset_ms` shifts what the database considers now, for tests; 0 in production.
    `slots_per_child` is how many claims one process runs side by side, 1 to 32, for all queues or
    by queue (others: 1); `group_commits` how many of their writes may travel as one command.

    Raises:
        UsageError: a lease, grace or count that is none, or an empty name.
    """

    mongo_url: str
    redis_url: str | None = None
    database: str = "baton"
    key_prefix: str = "baton"
    lease: Seconds = 15
    ring: Callable[[str], None] | None = None
    around_activity: Callable[[], AbstractContextManager[Any]] = nullcontext
    ports: Any = None
    hang_grace: Seconds = 30
    max_recoveries: int = 5
    types_off: frozenset[str] = frozenset()
    clock_offset_ms: int = 0
    slots_per_child: int | Mapping[str, int] = 1
    group_commits: int = limits.GROUP_COMMITS

    def __post_init__(self) -> None:
        if not self.mongo_url or not self.database or not self.key_prefix:
            raise UsageError("mongo_url, database and key_prefix must not be empty")
        try:
            lease = as_seconds(self.lease, what="lease")
            as_seconds(self.hang_grace, what="hang_grace")
        except InvalidValue as exc:
            raise UsageError(str(exc)) from exc
        if not 0.5 <= lease <= 3600:
            raise UsageError("lease must be between 0.5 and 3600 seconds")
        if self.max_recoveries < 0:
            raise UsageError("max_recoveries must be 0 or more")
        each = self.slots_per_child
        for slots in each.values() if isinstance(each, Mapping) else (each,):
            if not _is_count(slots, most=limits.SLOTS_PER_CHILD):
                raise UsageError(
                    f"slots_per_child must be 1 to {limits.SLOTS_PER_CHILD}, not {slots!r}"
                )
        if not _is_count(self.group_commits, most=1000):
            raise UsageError("group_commits must be 1 to 1000")

    def slots(self, queue: str) -> int:
        """Return how many claims of a queue one process runs side by side."""
        each = self.slots_per_child
        return each.get(queue, 1) if isinstance(each, Mapping) else each

    @property
    def lease_ms(self) -> int:
        """The lease of a claim, in milliseconds."""
        return int(as_seconds(self.lease, what="lease") * 1000)

    @property
    def hang_grace_seconds(self) -> float:
        """How long a cancelled call may take to leave before its thread is abandoned."""
        return as_seconds(self.hang_grace, what="hang_grace")


def _is_count(value: object, *, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
