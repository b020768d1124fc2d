"""Name every key Baton has in Redis; no other module builds one.

Guarantees: all keys of one queue carry the hash tag `{<queue>}`, so that every script's keys lie
in one slot of a Redis Cluster; two deployments with different prefixes never meet.
Leaves to others: what is kept under the keys (lua/, kernel.hints.redis_hints).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel.errors import UsageError

#: One lane per priority, P0 realtime to P3 recovery.
LANES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueKeys:
    """The keys of one queue."""

    #: Four sorted sets, workflow_id -> when it may run, ms.
    lanes: tuple[str, ...]
    #: Hash: whose turn it is in the weighted round robin, and the burst.
    rotation: str
    #: Sorted set, workflow_id -> when a waiting workflow is to be looked at, ms.
    timers: str
    #: Sorted set, workflow_id|token -> when the lease of that claim ends, ms.
    leases: str
    #: Present while a wakeup is on its way; ends by itself.
    bell: str
    #: The same for wakeups that tick sends.
    tickbell: str


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of one deployment."""

    prefix: str

    def __post_init__(self) -> None:
        """Refuse a prefix that would take over the hash tag."""
        _refuse_braces("key_prefix", self.prefix)

    @property
    def marker(self) -> str:
        """Key that is missing only after a flush or on a new Redis."""
        return f"{self.prefix}:marker"

    def of(self, queue: str) -> QueueKeys:
        """Name the keys of a queue. Raises: UsageError, when its name cannot be a hash tag."""
        _refuse_braces("queue", queue)
        base = f"{self.prefix}:{{{queue}}}"
        return QueueKeys(
            lanes=tuple(f"{base}:ready:{lane}" for lane in range(LANES)),
            rotation=f"{base}:rotation",
            timers=f"{base}:timers",
            leases=f"{base}:leases",
            bell=f"{base}:bell",
            tickbell=f"{base}:tickbell",
        )


def _refuse_braces(what: str, name: str) -> None:
    """An empty tag, or a brace of its own, would scatter a queue's keys over cluster slots."""
    if not name or "{" in name or "}" in name:
        raise UsageError(f"{what} {name!r} cannot name Redis keys: give it a name without {{ or }}")
