"""The line of a resource: instances put off for its permits, best lane first, then longest wait.

The line lives in the instances' `blocked_on`, so it survives Redis. Handed on, an instance is due
and no longer offered anything; refused again, it stands where it stood. Of one lane and moment,
who was registered first stands first.

Guarantees that a look at the front costs the same however long the line is, and that one that
cannot be read is passed over and logged, hides nobody behind it, and still stands there. Leaves to
others: whose turn it is (`kernel.engine.handing_on`), what can be read (`kernel.store.standing`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from pymongo import UpdateOne

from kernel.model import InstanceStatus
from kernel.protocol.commit import Commit
from kernel.store.clock import StoreClock
from kernel.store.compiling import compile_guard, compile_stages
from kernel.store.connection import Connection, Document, translated
from kernel.store.schema import BLOCKED_INDEX, INSTANCES
from kernel.store.standing import HAS_STEPS, IS_TIMED, READABLE, STEPS, Standing, read, row_of, told

log: Final = logging.getLogger("baton.store")

#: Ids ascend where one process registered a page at one moment.
_ORDER: Final = {"priority": 1, "blocked_on.since": 1, "_id": 1}
_LARGE_BYTES: Final = 32 * 1024
_UNLESS_LARGE: Final = {"$cond": [{"$lt": [{"$bsonSize": "$$ROOT"}, _LARGE_BYTES]}, "$$ROOT", None]}


class Waiters:
    """Reads lines, and hands on. Every method may raise StoreUnavailable."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._instances = connection.collection(INSTANCES)
        self._clock = clock

    def first(
        self,
        resource: str,
        *,
        limit: int,
        closed: Collection[str] = (),
        kept: Collection[str] = (),
    ) -> list[Standing]:
        """Return those next in line that nobody holds and nothing was handed on to.

        Without those who need one of `closed`, but for those of the workflows `kept`.
        """
        also = self._not_due()
        if closed:
            others = {"blocked_on.needs": {"$nin": sorted(closed)}}
            also["$or"] = [others, {"workflow_id": {"$in": sorted(kept)}}]
        return self._standing(resource, limit, also)

    def first_whole(self, resource: str, *, limit: int) -> list[Standing]:
        """Return `first`, each with its document unless that is large.

        The documents alone are read, which asks the server for least; what they do not tell is
        asked for as always.
        """
        found = {**_in_line(resource), **self._not_due()}
        with translated():
            rows = list(
                self._instances.find(found, {"document": _UNLESS_LARGE}, hint=BLOCKED_INDEX)
                .sort(list(_ORDER.items()))
                .limit(limit)
            )
        documents = [row["document"] for row in rows if row["document"] is not None]
        standing, faults = read(row_of(document, resource) for document in documents)
        if faults or len(documents) < len(rows):
            return self._standing(resource, limit, self._not_due(), whole=True)
        return standing

    def shown(self, resource: str, *, limit: int) -> list[Standing]:
        """Return the line for people: also those that were handed on and not claimed yet."""
        return self._standing(resource, limit, {})

    def count(self, resource: str) -> int:
        """Return how many stand in line."""
        with translated():
            return self._instances.count_documents(_in_line(resource), hint=BLOCKED_INDEX)

    def is_anybody_ahead(self, resource: str, *, priority: int, since: datetime | None) -> bool:
        """Tell whether somebody stands before one of this lane and wait (None: just come)."""
        ahead: dict[str, Any] = {"priority": {"$lte": priority}}
        if since is not None:
            ahead = {
                "$or": [
                    {"priority": {"$lt": priority}},
                    {"priority": priority, "blocked_on.since": {"$lt": since}},
                ]
            }
        with translated():
            found = self._instances.find_one(
                {**_in_line(resource), **ahead, **self._not_due()}, {"_id": 1}, hint=BLOCKED_INDEX
            )
        return found is not None

    def is_empty(self, resource: str) -> bool:
        """Tell whether nobody stands there that `first` looks at, readable or not."""
        with translated():
            found = self._instances.find_one(
                {**_in_line(resource), **self._not_due()}, {"_id": 1}, hint=BLOCKED_INDEX
            )
        return found is None

    def position(
        self, resource: str, *, workflow_id: str, priority: int, since: datetime, limit: int
    ) -> int:
        """Return the place of a waiter in the line as `shown` tells it, counting up to `limit`."""
        ahead: list[dict[str, Any]] = [
            {"priority": {"$lt": priority}},
            {"priority": priority, "blocked_on.since": {"$lt": since}},
        ]
        with translated():
            own = self._instances.find_one({"workflow_id": workflow_id}, {"_id": 1})
            if own is not None:
                tied = {"priority": priority, "blocked_on.since": since}
                ahead.append({**tied, "_id": {"$lt": own["_id"]}})
            found = {**_in_line(resource), **READABLE, "$or": ahead}
            return 1 + self._instances.count_documents(found, limit=limit, hint=BLOCKED_INDEX)

    def move(self, commit: Commit) -> bool:
        """Let a waiter stand in another line; False: it has moved on meanwhile."""
        found, stages = compile_guard(commit.guard), compile_stages(commit, self._clock)
        with translated():
            return bool(self._instances.update_one(found, stages).matched_count)

    def still_waiting(self, workflow_ids: Sequence[str]) -> set[str]:
        """Return those of these workflows that stand in some line."""
        found = {"workflow_id": {"$in": list(workflow_ids)}, "blocked_on.resources": {"$gt": ""}}
        with translated():
            return {row["workflow_id"] for row in self._instances.find(found, {"workflow_id": 1})}

    def hand_on(self, commits: Sequence[Commit]) -> None:
        """Make waiters claimable; those that have moved on meanwhile are left alone."""
        updates = [
            UpdateOne(compile_guard(commit.guard), compile_stages(commit, self._clock))
            for commit in commits
        ]
        if updates:
            with translated():
                self._instances.bulk_write(updates, ordered=False)

    def tokens_of(self, workflow_ids: Sequence[str]) -> dict[str, str | None]:
        """Return who holds these instances now; terminal or unknown ones are held by nobody."""
        with translated():
            rows = self._instances.find(
                {"workflow_id": {"$in": list(workflow_ids)}}, {"workflow_id": 1, "claim_token": 1}
            )
            held = {row["workflow_id"]: row.get("claim_token") for row in rows}
        return {workflow_id: held.get(workflow_id) for workflow_id in workflow_ids}

    def waited_for(self, *, limit: int, after: str | None = None) -> list[str]:
        """Return resources somebody stands in line for, sorted, from the instances alone.

        One bounded look for each, however long its line is.
        """
        names: list[str] = []
        last = after or ""
        with translated():
            while len(names) < limit:
                key = self._instances.find_one(
                    {"blocked_on.resources": {"$gt": last}}, hint=BLOCKED_INDEX, return_key=True
                )
                if key is None:
                    break
                last = key["blocked_on.resources"]
                names.append(last)
        return names

    def _not_due(self) -> dict[str, Any]:
        """The filter of those to whom nothing was handed on; one that was is due."""
        return {"$expr": {"$gt": ["$claimable_time", self._clock.now()]}}

    def _standing(
        self, resource: str, limit: int, also: dict[str, Any], *, whole: bool = False
    ) -> list[Standing]:
        rows = self._rows(resource, limit, also, whole=whole)
        standing, faults = read(rows)
        if faults:
            log.error("passed over in the line of %s: %s", resource, told(faults))
            # Only now, since telling them apart in the database costs every look.
            if len(rows) == limit:
                rows = self._rows(resource, limit, {"$and": [also, READABLE]}, whole=whole)
                standing, _ = read(rows)
        return standing

    def _rows(
        self, resource: str, limit: int, also: dict[str, Any], *, whole: bool
    ) -> list[Document]:
        waits_for = "$$s.v.blocked_on.resources"
        is_ours = {"$and": [{"$isArray": waits_for}, {"$in": [resource, waits_for]}]}
        steps = {"$filter": {"input": STEPS, "as": "s", "cond": is_ours}}
        timed = {"$filter": {"input": STEPS, "as": "s", "cond": IS_TIMED}}
        put_off = {"k": "$$s.k", "needs": "$$s.v.blocked_on.needs"}
        found: list[dict[str, Any]] = [
            {"$match": {**_in_line(resource), **also}},
            {"$sort": _ORDER},
            {"$limit": limit},
            {
                "$project": {
                    **dict.fromkeys(("workflow_id", "queue", "priority", "revision"), 1),
                    "blocked_on": 1,
                    "round_started_at": 1,
                    "timed": {"$size": timed},
                    "has_steps": HAS_STEPS,
                    **({"document": _UNLESS_LARGE} if whole else {}),
                    "put_off": {"$map": {"input": steps, "as": "s", "in": put_off}},
                }
            },
        ]
        with translated():
            return list(self._instances.aggregate(found, hint=BLOCKED_INDEX))


def _in_line(resource: str) -> dict[str, Any]:
    return {
        "blocked_on.resources": resource,
        "status": InstanceStatus.RUNNING.value,
        "claim_token": None,
    }
