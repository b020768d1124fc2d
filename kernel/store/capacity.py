"""Resources: who holds permits, for whom some are kept, who changed which limit (design 2.5).

One document each; every change is one conditional update. Answers are read from the document as it
is afterwards, so asking again after a lost answer is safe: whoever is among the holders is renewed,
whoever is not gives up nothing by leaving again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from kernel.errors import InvariantViolation, RevisionConflict, StoreUnavailable, Unreadable
from kernel.protocol.resources import PermitOwner, ResourceState
from kernel.store import capacity_changes, capacity_pipelines, resource_documents
from kernel.store.batches import database_now
from kernel.store.capacity_pipelines import Pipeline
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, Document, translated
from kernel.store.exchanging import Leaving, exchanged
from kernel.store.resource_documents import READABLE, Judged, has_entry, state_of
from kernel.store.schema import CAPACITY

_NO_HISTORY: Final = {"history": 0}


class CapacityStore:
    """The `workflow_capacity` collection. Every method may raise StoreUnavailable.

    What this version cannot read is not written to, unless it was spoilt within the last second:
    then nothing in it is lost (`Judged`). Who names such a resource alone gets Unreadable, who
    looks at many gets the others.
    """

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._connection = connection
        self._resources = connection.collection(CAPACITY)
        self._clock = clock
        self._judged = Judged()

    def read(self, resource: str, *, with_history: bool = False) -> ResourceState:
        """Return a resource; one nobody named yet is unlimited, at revision 0."""
        states, foreign = self.read_each([resource], with_history=with_history)
        if foreign:
            raise foreign[resource]
        return states[resource]

    def read_each(
        self, resources: Sequence[str], *, with_history: bool = False
    ) -> tuple[dict[str, ResourceState], dict[str, Unreadable]]:
        """Return those that can be read, as at one moment each, and why not of the others."""
        named = {"_id": {"$in": list(resources)}}
        found: Pipeline = [
            {"$match": {**named, **READABLE}},
            *([] if with_history else [{"$unset": "history"}]),
            *self._seen(),
        ]
        with translated():
            rows = {row["_id"]: row for row in self._resources.aggregate(found)}
            missing = [name for name in resources if name not in rows]
            if missing:
                rows_left = self._resources.find({"$and": [named, resource_documents.FOREIGN]})
                foreign = {row["_id"]: resource_documents.unreadable(row) for row in rows_left}
                now = database_now(self._connection, self._clock)
        states = {name: state_of(row) for name, row in rows.items()}
        self._judged.found(READABLE, states)
        if not missing:
            return states, {}
        unused = {
            name: ResourceState(name=name, now=now) for name in missing if name not in foreign
        }
        return states | unused, foreign

    def exchange(
        self,
        resource: str,
        *,
        leaving: Sequence[Leaving] = (),
        wanted: Sequence[PermitOwner] = (),
        lease_ms: int,
        unasked: int = 0,
    ) -> ResourceState:
        """Take out those that leave and grant or refuse those that ask, in one update.

        `state.holds(owner)` is the answer. On repeat: those that hold are renewed, those that are
        out stay out; a place already passed on or kept is not given twice; `unasked` are counted
        again.
        """
        pipeline = exchanged(leaving, wanted, self._clock, lease_ms=lease_ms, unasked=unasked)
        return self._update(resource, pipeline)

    def acquire(
        self, resource: str, owners: Sequence[PermitOwner], *, lease_ms: int
    ) -> ResourceState:
        """Grant or refuse each owner, in order, in one update; see `exchange`."""
        return self.exchange(resource, wanted=owners, lease_ms=lease_ms)

    def release(self, resource: str, owners: Sequence[PermitOwner]) -> ResourceState:
        """Give permits back. On repeat: nothing."""
        leaving = [Leaving(owner=owner) for owner in owners]
        return self.exchange(resource, leaving=leaving, lease_ms=0)

    def reserve(
        self, resource: str, workflow_ids: Sequence[str], *, for_waiters: bool = True
    ) -> ResourceState:
        """Keep a place for each workflow in order while there are some; see `state.reserved`.

        `for_waiters`: those that hold a permit by now need none any more.
        """
        pipeline = [
            *capacity_pipelines.dropped(self._clock),
            *capacity_pipelines.reserved(workflow_ids, self._clock, for_waiters=for_waiters),
        ]
        return self._update(resource, pipeline)

    def gather(self, resource: str, workflow_id: str, *, for_ms: int) -> bool:
        """Keep a place for one that waits for another resource yet; one workflow at a time may."""
        pipeline = [
            *capacity_pipelines.dropped(self._clock),
            *capacity_pipelines.gathered(workflow_id, self._clock, for_ms=for_ms),
        ]
        return workflow_id in self._update(resource, pipeline).gathering

    def unreserve(self, resource: str, workflow_ids: Sequence[str]) -> None:
        """Let go of reservations. On repeat: nothing."""
        kept = {"$not": [{"$in": ["$$r.workflow_id", {"$literal": list(workflow_ids)}]}]}
        left = {"$filter": {"input": "$reservations", "as": "r", "cond": kept}}
        with translated():
            self._resources.update_one(
                {"_id": resource, "reservations": {"$exists": True}, **READABLE},
                [{"$set": {"reservations": left}}],
            )

    def renew(self, tokens: Sequence[str], *, lease_ms: int) -> None:
        """Extend all permits of these claims, in one command."""
        if not tokens:
            return
        with translated():
            self._resources.update_many(
                {"holders.owner.token": {"$in": list(tokens)}, **READABLE},
                capacity_pipelines.renewed(tokens, self._clock, lease_ms=lease_ms),
            )

    def held_by(self, tokens: Sequence[str]) -> dict[str, list[PermitOwner]]:
        """Return the permits of these claims, by resource."""
        with translated():
            found = {"holders.owner.token": {"$in": list(tokens)}, **READABLE}
            rows = list(self._resources.find(found, {"holders": 1}))
        return {
            row["_id"]: [
                PermitOwner(**held["owner"])
                for held in row["holders"]
                if held["owner"]["token"] in tokens
            ]
            for row in rows
        }

    def set_line(self, resource: str) -> None:
        """Say that somebody waits, where nothing said so."""
        with translated():
            self._resources.update_one(
                {"_id": resource, "line": 0, **READABLE},
                [{"$set": {"line": {"$max": [1, "$refused"]}, "queued": {"$max": [1, "$queued"]}}}],
            )

    def clear_line(self, resource: str, line: int) -> bool:
        """Say that nobody waits, if no refusal came since the line was read as `line`."""
        with translated():
            result = self._resources.update_one(
                {"_id": resource, "line": line, **READABLE}, {"$set": {"line": 0, "queued": 0}}
            )
        return bool(result.matched_count)

    def in_line(self, *, limit: int, after: str | None = None) -> list[ResourceState]:
        """Return resources somebody is said to wait for, in order of their names."""
        found: Pipeline = [
            {"$match": {"_id": {"$gt": after or ""}, "line": {"$gt": 0}, **READABLE}},
            {"$sort": {"_id": 1}},
            {"$limit": limit},
            {"$unset": "history"},
            *self._seen(),
        ]
        with translated():
            return [state_of(row) for row in self._resources.aggregate(found)]

    def occupied(self, *, limit: int, after: str | None) -> list[ResourceState]:
        """Return resources with holders or reservations, in order of their names."""
        found: dict[str, Any] = {"_id": {"$gt": after or ""}, **READABLE}
        found["$or"] = [{"holders.0": {"$exists": True}}, {"reservations.0": {"$exists": True}}]
        pages: Pipeline = [
            {"$match": found},
            {"$sort": {"_id": 1}},
            {"$limit": limit},
            {"$unset": "history"},
            *self._seen(),
        ]
        with translated():
            return [state_of(row) for row in self._resources.aggregate(pages)]

    def drop_over(self, resources: Sequence[str]) -> None:
        """Remove permits and reservations that ran out long ago. On repeat: nothing."""
        if not resources:
            return
        found = {
            "_id": {"$in": list(resources)},
            **READABLE,
            "$expr": capacity_pipelines.has_over(self._clock),
        }
        with translated():
            self._resources.update_many(found, capacity_pipelines.dropped(self._clock))

    def foreign(self, *, limit: int) -> list[Unreadable]:
        """Say of resources that cannot be read why not."""
        with translated():
            return [
                resource_documents.unreadable(row)
                for row in self._resources.find(resource_documents.FOREIGN).limit(limit)
            ]

    def names(self, *, limit: int) -> list[str]:
        """Return the known resources, sorted."""
        with translated():
            rows = self._resources.find({}, {"_id": 1}).sort("_id", 1).limit(limit)
            return [row["_id"] for row in rows]

    def set_limits(
        self,
        resource: str,
        values: Mapping[str, object],
        *,
        by: str,
        reason: str,
        expires_ms: int | None,
        if_revision: int | None,
    ) -> None:
        """Change the limits named in `values`, for good or as an override that falls back.

        Raises:
            RevisionConflict: the resource is not at `if_revision`; nothing was written.
        """
        fields, change = capacity_changes.limits_changed(values, self._clock, expires_ms=expires_ms)
        self._change(resource, fields, change, by=by, reason=reason, if_revision=if_revision)

    def set_paused(
        self, resource: str, paused: bool, *, by: str, reason: str, if_revision: int | None
    ) -> None:
        """Pause or resume. Raises: RevisionConflict, as `set_limits`."""
        fields: dict[str, Any] = {"paused": paused}
        self._change(resource, fields, dict(fields), by=by, reason=reason, if_revision=if_revision)

    def set_cooldown(
        self, resource: str, *, for_ms: int, by: str, reason: str, if_revision: int | None
    ) -> None:
        """Close for a while, never shortening a longer one; 0 ends it. Raises: as `set_limits`."""
        fields = capacity_changes.cooled(self._clock, for_ms=for_ms)
        change = {"cooldown_until": fields["cooldown_until"]}
        self._change(resource, fields, change, by=by, reason=reason, if_revision=if_revision)

    def cool_down(self, resource: str, *, for_ms: int, by: str, reason: str) -> None:
        """Close for a while because a worker was told so; kept in the history once per cooldown."""
        self._update(
            resource,
            [
                *capacity_pipelines.dropped(self._clock),
                *capacity_changes.cooled_by_worker(
                    self._clock, for_ms=for_ms, by=by, reason=reason
                ),
            ],
        )

    def _change(
        self,
        resource: str,
        fields: Mapping[str, Any],
        change: Mapping[str, Any],
        *,
        by: str,
        reason: str,
        if_revision: int | None,
    ) -> None:
        nonce = secrets.token_hex(8)
        entry = capacity_changes.entry(self._clock, nonce, change, by=by, reason=reason)
        pipeline = [
            *capacity_pipelines.dropped(self._clock),
            capacity_changes.guarded(fields, entry, if_revision=if_revision),
        ]
        try:
            document = self._send(resource, pipeline, projection=None)
        except StoreUnavailable:
            with translated():
                document = self._connection.majority(CAPACITY).find_one({"_id": resource}) or {}
            if not has_entry(document, nonce):
                raise
        if not has_entry(document, nonce):
            raise RevisionConflict(
                f"capacity resource {resource!r}",
                revision=int(document.get("revision", 0)),
                expected=if_revision or 0,
            )

    def _update(self, resource: str, pipeline: Pipeline) -> ResourceState:
        document = self._send(resource, pipeline, projection=_NO_HISTORY)
        try:
            return state_of(document)
        except (TypeError, ValueError, KeyError, AttributeError):
            self._doubt(resource)
            raise

    def _send(
        self, resource: str, pipeline: Pipeline, *, projection: dict[str, int] | None
    ) -> Document:
        seen = [*pipeline, {"$set": {"seen_at": self._clock.now()}}]
        for _ in range(2):
            guard = self._judged.guard(resource)
            try:
                with translated():
                    document = self._resources.find_one_and_update(
                        {"_id": resource, **guard},
                        seen,
                        projection=projection,
                        upsert=True,
                        return_document=ReturnDocument.AFTER,
                    )
            except DuplicateKeyError:
                continue  # two first uses at once: the other one made it
            except InvariantViolation:
                self._doubt(resource)
                raise
            if document is not None:
                self._judged.found(guard, [resource])
                return document
        self._doubt(resource)
        raise InvariantViolation(f"resource {resource!r} was neither made nor found")

    def _doubt(self, resource: str) -> None:
        """Say so if it cannot be read. Raises: Unreadable."""
        self._judged.doubt(resource)
        self.read(resource)

    def _seen(self) -> Pipeline:
        """The stages that show a document as an update would find it, with the time of reading."""
        return [
            *capacity_pipelines.dropped(self._clock),
            {"$set": {"seen_at": self._clock.now()}},
        ]
