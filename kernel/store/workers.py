"""Who could run what: beats of the workers, gone by themselves when a worker is (design 1.1).

Guarantees that a beat is judged on the database's clock. Leaves to others when it is written
(`kernel.keeper`) and what follows from its absence: it explains and spaces out tries, no more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kernel import limits
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, translated
from kernel.store.schema import WORKERS

log: Final = logging.getLogger("baton.store")


@dataclass(frozen=True, slots=True)
class Served:
    """A definition a worker runs: its type and the fingerprint it reads instances with."""

    type: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBeat:
    """A worker as last heard of; times on the database's clock.

    `claimed_at` is when it was last seen to have taken a claim, None: never.
    """

    owner: str
    queues: tuple[str, ...]
    served: tuple[Served, ...]
    children: int
    claims: int
    stopping: bool
    claimed_at: datetime | None
    beat_at: datetime


class WorkerBeats:
    """The `workflow_workers` collection: one document a worker, ended by a TTL index."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._workers = connection.collection(WORKERS)
        self._clock = clock

    def beat(
        self,
        owner: str,
        *,
        queues: Sequence[str],
        served: Sequence[Served],
        children: int,
        claims: int,
        stopping: bool,
        claimed_ago: float | None,
    ) -> None:
        """Say that a worker is alive and what it serves. On repeat: the later one counts.

        `claimed_ago` is how many seconds ago it last took a claim, None: never.
        """
        facts = {
            "queues": list(queues),
            "served": [{"type": one.type, "fingerprint": one.fingerprint} for one in served],
            "children": children,
            "claims": claims,
            "stopping": stopping,
        }
        change: dict[str, Any] = {key: {"$literal": value} for key, value in facts.items()}
        change["claimed_at"] = (
            {"$literal": None} if claimed_ago is None else self._clock.now(-int(claimed_ago * 1000))
        )
        with translated():
            self._workers.update_one(
                {"_id": owner}, [{"$set": {**change, "beat_at": self._clock.now()}}], upsert=True
            )

    def forget(self, owner: str) -> None:
        """Remove a worker that has stopped in good order. On repeat: nothing."""
        with translated():
            self._workers.delete_one({"_id": owner})

    def is_served(self, fingerprint: str) -> bool:
        """Tell whether a worker that knows this definition was heard of lately (limits)."""
        seen = self.seen(within_seconds=limits.WORKER_SEEN_SECONDS)
        return any(one.fingerprint == fingerprint for beat in seen for one in beat.served)

    def seen(self, *, within_seconds: float) -> list[WorkerBeat]:
        """Return the workers heard of within that time, by owner.

        A beat this version cannot read is passed over and logged.
        """
        since = self._clock.now(-int(within_seconds * 1000))
        with translated():
            rows = list(self._workers.find({"$expr": {"$gte": ["$beat_at", since]}}).sort("_id", 1))
        return [beat for row in rows if (beat := _beat(row)) is not None]


def _beat(row: dict[str, Any]) -> WorkerBeat | None:
    try:
        return WorkerBeat(
            owner=row["_id"],
            queues=tuple(row["queues"]),
            served=tuple(Served(one["type"], one["fingerprint"]) for one in row["served"]),
            children=row["children"],
            claims=row["claims"],
            stopping=row["stopping"],
            claimed_at=_moment(row["claimed_at"]) if row.get("claimed_at") is not None else None,
            beat_at=_moment(row["beat_at"]),
        )
    except (KeyError, TypeError) as exc:
        log.error("passed over: beat of %r: %s: %s", row["_id"], type(exc).__name__, exc)
        return None


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"{value!r} is no date")
    return value
