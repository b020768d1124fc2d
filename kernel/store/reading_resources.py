"""Reads of resources for whoever checks stored facts: as they are stored, what is over included.

Guarantees that nothing is written, that a page costs its own size, and that a document nobody can
read is told and not raised. Leaves judging to `kernel.verifying`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kernel import limits
from kernel.model import InstanceStatus
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, Document, translated
from kernel.store.schema import CAPACITY, INSTANCES


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who holds an instance, and when it was last written."""

    token: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRead:
    """A resource's document at `now`, and the claims of those it names, by workflow_id.

    `standing` is how many wait for it that nobody has let go yet.
    """

    name: str
    now: datetime
    row: Mapping[str, Any]
    standing: int = 0
    claims: Mapping[str, Claim] = field(default_factory=dict)


class ResourceReader:
    """Reads `workflow_capacity` from the primary, and of instances what concerns it."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._resources = connection.collection(CAPACITY)
        self._instances = connection.collection(INSTANCES)
        self._clock = clock

    def page(self, *, limit: int, after: str | None) -> list[ResourceRead]:
        """Return resources in order of their names after `after`."""
        found = {"_id": {"$gt": after or ""}}
        return self._read([{"$match": found}, {"$sort": {"_id": 1}}, {"$limit": limit}])

    def again(self, names: Collection[str]) -> list[ResourceRead]:
        """Return these resources as they are now."""
        return self._read([{"$match": {"_id": {"$in": list(names)}}}])

    def _read(self, found: list[dict[str, Any]]) -> list[ResourceRead]:
        with translated():
            # The resources first: whoever took a permit later is not among the holders read.
            rows = list(self._resources.aggregate([*found, {"$set": {"_now": self._clock.now()}}]))
            claims = self._claims({one for row in rows for one in _named(row)})
            standing = {row["_id"]: self._standing(row) for row in rows}
        return [
            ResourceRead(
                name=str(row["_id"]),
                now=row.pop("_now"),
                row=row,
                standing=standing[row["_id"]],
                claims=claims,
            )
            for row in rows
        ]

    def _claims(self, workflow_ids: Collection[str]) -> dict[str, Claim]:
        found = self._instances.find(
            {"workflow_id": {"$in": list(workflow_ids)}},
            {"workflow_id": 1, "claim_token": 1, "updated_at": 1},
        )
        return {
            row["workflow_id"]: Claim(
                token=row.get("claim_token"), updated_at=_moment(row.get("updated_at"))
            )
            for row in found
        }

    def _standing(self, row: Document) -> int:
        """Count who waits for a resource that says somebody does; enough to tell some from none."""
        if not row.get("line"):
            return 0
        waits = {
            "blocked_on.resources": row["_id"],
            "status": InstanceStatus.RUNNING.value,
            "claim_token": None,
        }
        return self._instances.count_documents(waits, limit=1)


def _moment(value: object) -> datetime:
    """Return when something was written; where that cannot be read, nothing is held against it."""
    return value if isinstance(value, datetime) else limits.FAR_FUTURE


def _named(row: Document) -> Sequence[str]:
    """Name whose permits a document holds, however it looks."""
    holders = row.get("holders")
    if not isinstance(holders, list):
        return ()
    owners = (held.get("owner") for held in holders if isinstance(held, dict))
    named = (owner.get("workflow_id") for owner in owners if isinstance(owner, dict))
    return [workflow_id for workflow_id in named if isinstance(workflow_id, str)]
