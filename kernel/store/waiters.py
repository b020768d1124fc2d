"""The line of a resource: instances put off for its permits, best lane first, then longest wait.

The line lives in the instances' `blocked_on`, so it survives Redis. Handed on, an instance is due
and no longer offered anything; refused again, it stands where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pymongo import UpdateOne

from kernel.model import InstanceStatus
from kernel.protocol.commit import Commit
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored
from kernel.store.compiling import compile_guard, compile_stages
from kernel.store.connection import Connection, Document, translated
from kernel.store.schema import BLOCKED_INDEX, INSTANCES

_ORDER: Final = {"priority": 1, "blocked_on.since": 1}
_LARGE_BYTES: Final = 32 * 1024
_UNLESS_LARGE: Final = {"$cond": [{"$lt": [{"$bsonSize": "$$ROOT"}, _LARGE_BYTES]}, "$$ROOT", None]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An instance in a line: what handing on to it needs to know.

    `steps` are those put off because of this resource (none: the workflow itself), `needs` all
    resources the first of them needs at once.
    """

    workflow_id: str
    queue: str
    priority: int
    revision: int
    since: datetime
    started: datetime
    step: str | None
    steps: tuple[str, ...]
    needs: frozenset[str]
    #: Which resources it waits for; whether those steps need the same ones, and nothing else of the
    #: instance has a time at which it goes on.
    resources: tuple[str, ...] = ()
    is_plain: bool = False
    #: The instance whole, as stored, where it was asked for and is not large.
    document: Document | None = None


class Waiters:
    """Reads lines, and hands on. Every method may raise StoreUnavailable."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._instances = connection.collection(INSTANCES)
        self._clock = clock

    def first(self, resource: str, *, limit: int, whole: bool = False) -> list[Standing]:
        """Return those next in line that nobody holds and nothing was handed on to."""
        not_yet = {"$expr": {"$gt": ["$claimable_time", self._clock.now()]}}
        return self._standing(resource, limit, not_yet, whole=whole)

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
        not_yet = {"$expr": {"$gt": ["$claimable_time", self._clock.now()]}}
        with translated():
            found = self._instances.find_one(
                {**_in_line(resource), **ahead, **not_yet}, {"_id": 1}, hint=BLOCKED_INDEX
            )
        return found is not None

    def position(self, resource: str, *, priority: int, since: datetime, limit: int) -> int:
        """Return a place in the line, from 1, counting up to `limit`."""
        ahead = {
            "$or": [
                {"priority": {"$lt": priority}},
                {"priority": priority, "blocked_on.since": {"$lt": since}},
            ]
        }
        with translated():
            count = self._instances.count_documents({**_in_line(resource), **ahead}, limit=limit)
        return 1 + count

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

    def waited_for(self, *, limit: int) -> list[str]:
        """Return resources somebody stands in line for, from the instances alone.

        One bounded look for each, however long its line is.
        """
        names: list[str] = []
        last = ""
        with translated():
            while len(names) < limit:
                row = self._instances.find_one(
                    {"blocked_on.resources": {"$gt": last}},
                    {"blocked_on.resources": 1},
                    hint=BLOCKED_INDEX,
                )
                if row is None:
                    break
                last = min(name for name in row["blocked_on"]["resources"] if name > last)
                names.append(last)
        return names

    def _standing(
        self, resource: str, limit: int, also: dict[str, Any], *, whole: bool = False
    ) -> list[Standing]:
        is_ours = {"$in": [resource, {"$ifNull": ["$$s.v.blocked_on.resources", []]}]}
        of_all = {"$objectToArray": "$steps"}
        steps = {"$filter": {"input": of_all, "as": "s", "cond": is_ours}}
        has_time = {"$gt": ["$$s.v.not_before", None]}
        timed = {"$filter": {"input": of_all, "as": "s", "cond": has_time}}
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
                    **({"document": _UNLESS_LARGE} if whole else {}),
                    "put_off": {
                        "$map": {
                            "input": steps,
                            "as": "s",
                            "in": {"k": "$$s.k", "needs": "$$s.v.blocked_on.needs"},
                        }
                    },
                }
            },
        ]
        with translated():
            rows = list(self._instances.aggregate(found, hint=BLOCKED_INDEX))
        return [_as_standing(row) for row in rows]


def _in_line(resource: str) -> dict[str, Any]:
    return {
        "blocked_on.resources": resource,
        "status": InstanceStatus.RUNNING.value,
        "claim_token": None,
    }


def _as_standing(row: dict[str, Any]) -> Standing:
    blocked = row["blocked_on"]
    steps = row["put_off"]
    needs = steps[0].get("needs") if steps else blocked.get("needs")
    return Standing(
        workflow_id=row["workflow_id"],
        queue=row["queue"],
        priority=int(row["priority"]),
        revision=int(row["revision"]),
        since=blocked["since"],
        started=row["round_started_at"],
        step=blocked.get("step"),
        steps=tuple(step["k"] for step in steps),
        needs=frozenset(needs or ()),
        resources=tuple(blocked["resources"]),
        is_plain=row["timed"] == len(steps) and all(s.get("needs") == needs for s in steps),
        document=from_stored(row["document"]) if row.get("document") else None,
    )
