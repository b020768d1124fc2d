"""Bounded, indexed queries for work nobody was told about (design 2.3), and lists for people.

Guarantees that no query reads more than it was asked for, nor writes anything. Leaves to others
what is done about what is found (`kernel.reconcile`).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kernel.errors import NotFound
from kernel.model import Priority, StepState, WorkflowInstance
from kernel.protocol import owning
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored
from kernel.store.connection import Connection, Document, translated
from kernel.store.legible import legible
from kernel.store.schema import CLAIMABLE_INDEX, CREATED_INDEX, ID_INDEX, INSTANCES

log: Final = logging.getLogger("baton.store")

_CLAIMABLE: Final = [status.value for status in owning.CLAIMABLE]
#: What the lanes need of an instance: far less than the instance.
_HINT_FIELDS: Final = {"workflow_id": 1, "queue": 1, "priority": 1, "claimable_time": 1}
#: What an outline leaves out of a step: the value it carries, and where its time went.
_NOT_TOLD: Final = {"checkpoint", "attempts", "times", "lead"}
_OF_A_STEP: Final = [name for name in StepState.model_fields if name not in _NOT_TOLD]
#: Dates before it nobody here can read.
_FIRST_DATE: Final = datetime.min.replace(tzinfo=UTC)
_LANES: Final = frozenset(int(priority) for priority in Priority)
#: Outlines are small: a page of them fits into one answer.
_BATCH: Final = 1_000
#: Pages looked at, at most, for one that is full of what can be read.
_PAGES_PAST: Final = 20
Cursor = tuple[datetime, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """An instance without the values it carries, and the database's now of that reading.

    All is told that says how far it is and what it waits for, so that who cannot read an instance
    cannot read its outline either; but not where its time went, which nothing here decides by.
    """

    instance: WorkflowInstance
    now: datetime


class InstanceScan:
    """Reads that find due instances, oldest first, and pages for people."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._instances = connection.collection(INSTANCES)
        self._clock = clock

    def due_waiting(self, *, limit: int, after: Cursor | None = None) -> list[Outline]:
        """Return waiting instances whose time has come, past those nobody here can read."""
        due: list[Outline] = []
        for _ in range(_PAGES_PAST):
            wanted = limit - len(due)
            found: list[dict[str, Any]] = [
                {"$match": self._page({"status": "waiting"}, after)},
                {"$sort": {"claimable_time": 1, "workflow_id": 1}},
                {"$limit": wanted},
            ]
            rows = self._outlined(found, hint=CLAIMABLE_INDEX)
            due += _outlines(rows)
            if len(rows) < wanted or len(due) == limit:
                break
            after = (rows[-1]["claimable_time"], rows[-1]["workflow_id"])
        return due

    def due_claimable(self, *, limit: int, after: Cursor | None = None) -> list[dict[str, Any]]:
        """Return what the lanes need of instances that may be claimed now.

        Those that no lane could take are passed over and logged; fewer than `limit` are the last.
        """
        rows = [row for status in _CLAIMABLE for row in self._candidates(status, limit, after)]
        rows.sort(key=lambda row: (row["claimable_time"], row["workflow_id"]))
        return rows[:limit]

    def _candidates(self, status: str, limit: int, after: Cursor | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while True:
            found = self._page({"status": status}, after)
            with translated():
                query = self._instances.find(found, _HINT_FIELDS, hint=CLAIMABLE_INDEX)
                query.sort([("claimable_time", 1), ("workflow_id", 1)])
                page = list(query.limit(limit))
            rows += filter(_is_candidate, page)
            if len(page) < limit or len(rows) >= limit:
                return rows
            after = (page[-1]["claimable_time"], page[-1]["workflow_id"])

    def outlines(self, workflow_ids: Collection[str]) -> dict[str, Outline]:
        """Return those of these instances that exist and can be read, by workflow_id."""
        found = [{"$match": {"workflow_id": {"$in": list(workflow_ids)}}}]
        rows = self._outlined(found, hint=ID_INDEX)
        return {each.instance.workflow_id: each for each in _outlines(rows)}

    def oldest_due(self, *, types_off: Iterable[str]) -> datetime | None:
        """Return since when the longest-waiting claimable instance has been due, or None."""
        found: dict[str, Any] = {"type": {"$nin": list(types_off)}}
        moments: list[datetime] = []
        with translated():
            for status in _CLAIMABLE:
                due = self._page({"status": status, **found}, None)
                due["claimable_time"] = {"$gte": _FIRST_DATE}
                query = self._instances.find(due, {"claimable_time": 1}, hint=CLAIMABLE_INDEX)
                rows = query.sort([("claimable_time", 1), ("workflow_id", 1)]).limit(1)
                moments.extend(row["claimable_time"] for row in rows)
        return min(moments, default=None)

    def page(
        self, *, status: Sequence[str], workflow_type: str | None, limit: int, after: str | None
    ) -> list[WorkflowInstance]:
        """Return instances, newest first, those after the instance `after`; for people.

        Those nobody here can read are passed over; fewer than `limit` are the last.
        """
        found: dict[str, Any] = {}
        if status:
            found["status"] = {"$in": list(status)}
        if workflow_type:
            found["type"] = workflow_type
        with translated():
            if after is not None:
                found |= self._older_than(after)
            rows = self._instances.find(found, hint=CREATED_INDEX, batch_size=limit)
            rows.sort([("created_at", -1), ("workflow_id", -1)])
            read = legible(map(from_stored, rows))
            return [instance for _, instance in itertools.islice(read, limit)]

    def _outlined(self, found: list[dict[str, Any]], *, hint: str) -> list[Document]:
        is_object = {"$eq": [{"$type": "$$step.v"}, "object"]}
        told = {name: f"$$step.v.{name}" for name in _OF_A_STEP}
        each = {"k": "$$step.k", "v": {"$cond": [is_object, told, "$$step.v"]}}
        mapped = {"$map": {"input": {"$objectToArray": "$steps"}, "as": "step", "in": each}}
        are_named = {"$eq": [{"$type": "$steps"}, "object"]}
        # Of another shape they are told as they are: they must not end the page for all others.
        steps = {"$cond": [are_named, {"$arrayToObject": mapped}, "$steps"]}
        outlined = [
            *found,
            {"$unset": ["input", "output"]},
            {"$set": {"steps": steps, "_now": self._clock.now()}},
        ]
        with translated():
            return list(self._instances.aggregate(outlined, hint=hint, batchSize=_BATCH))

    def _older_than(self, workflow_id: str) -> dict[str, Any]:
        last = self._instances.find_one({"workflow_id": workflow_id}, {"created_at": 1})
        if last is None:
            raise NotFound(f"no workflow instance {workflow_id!r} to go on after")
        created = last.get("created_at")
        return {
            "created_at": {"$lte": created},
            "$or": [
                {"created_at": {"$lt": created}},
                {"created_at": created, "workflow_id": {"$lt": workflow_id}},
            ],
        }

    def _page(self, found: dict[str, Any], after: Cursor | None) -> dict[str, Any]:
        due: dict[str, Any] = {**found, **self._clock.is_past("claimable_time")}
        # What is no date sorts before all dates, and no page would go on past it.
        due["claimable_time"] = {"$type": "date"}
        if after is not None:
            moment, workflow_id = after
            due["claimable_time"] = {"$gte": moment}
            due["$or"] = [
                {"claimable_time": {"$gt": moment}},
                {"claimable_time": moment, "workflow_id": {"$gt": workflow_id}},
            ]
        return due


def _is_candidate(row: Document) -> bool:
    """Tell whether a lane can take it, by the fields the lanes need; log it if not."""
    queue, lane = row.get("queue"), row.get("priority")
    fault = ""
    if not isinstance(queue, str) or not queue:
        fault = f"its queue is {queue!r}"
    elif not isinstance(lane, int) or isinstance(lane, bool) or lane not in _LANES:
        fault = f"its priority is {lane!r}"
    elif not isinstance(row["claimable_time"], datetime):
        fault = f"its claimable_time is {row['claimable_time']!r}"
    if fault:
        log.error("passed over: %r stands in no lane: %s", row["workflow_id"], fault)
    return not fault


def _outlines(rows: Iterable[Document]) -> list[Outline]:
    read = legible(map(from_stored, rows))
    return [Outline(instance=instance, now=row["_now"]) for row, instance in read]
