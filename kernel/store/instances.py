"""Instances: created once, changed by guarded commits, claimed for a while (design 1.4).

Every write is one conditional update on the database clock. An error in its answer leaves open
whether it was applied; that is told as StoreUnavailable, and the caller re-reads by token and seq.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import bson
from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import DocumentTooLarge, DuplicateKeyError, OperationFailure

from kernel import limits
from kernel.errors import StoreUnavailable, ValueTooLarge
from kernel.protocol import owning
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored, to_stored
from kernel.store.compiling import Filter, compile_changes, compile_guard, compile_stages
from kernel.store.connection import Connection, Document, translated
from kernel.store.port import Stored
from kernel.store.schema import INSTANCES, QUEUE_INDEX

_CLAIMABLE: Final = [status.value for status in owning.CLAIMABLE]
_TERMINAL: Final = ["completed", "failed", "canceled"]
#: In this time after an absence every living holder has renewed, however short its lease: it waits
#: for MongoDB in turns of a few seconds.
_HOLDERS_ANSWER_SECONDS: Final = 6.0
_TOO_LARGE_CODES: Final = frozenset({10334, 17419, 17420})


class InstanceStore:
    """The `workflow_instances` collection behind the protocol's commits."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._connection = connection
        self._clock = clock
        self._instances = connection.collection(INSTANCES)

    def create(self, workflow_id: str, changes: Changes) -> Stored | None:
        """Insert an instance and return it; None if its identity is taken.

        The unique indexes decide races. On repeat: None.
        """
        made = ObjectId()  # tells our document from one that was there
        new = {"_id": made, **compile_changes(changes, self._clock)}
        is_new = {"$eq": [{"$type": "$biz_key"}, "missing"]}
        pipeline = [
            {"$replaceWith": {"$cond": [is_new, {"$mergeObjects": ["$$ROOT", new]}, "$$ROOT"]}}
        ]
        try:
            with translated(), _too_large_told():
                document = self._instances.find_one_and_update(
                    {"workflow_id": workflow_id},
                    pipeline,
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
        except DuplicateKeyError:
            return None
        if document is None or document["_id"] != made:
            return None
        return Stored(document=from_stored(document), now=document["created_at"])

    def read(self, workflow_id: str, *, majority: bool = False) -> Stored | None:
        """Return the instance with the database's now; `majority` sees only what stays."""
        return self._read({"workflow_id": workflow_id}, majority=majority)

    def read_by_biz_key(self, biz_key: str) -> Stored | None:
        """Return the instance of a biz_key with the database's now, or None."""
        return self._read({"biz_key": biz_key}, majority=False)

    def commit(self, commit: Commit) -> bool:
        """Apply a commit; False means that its guard no longer held and nothing was written.

        Raises:
            StoreUnavailable: the outcome is unknown.
            ValueTooLarge: the instance would outgrow what one document can hold; nothing written.
        """
        with translated(), _too_large_told():
            result = self._instances.update_one(
                compile_guard(commit.guard), compile_stages(commit, self._clock)
            )
        return bool(result.matched_count == 1)

    def claim(
        self,
        workflow_id: str,
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
    ) -> Stored | None:
        """Take the claim of a candidate: only if due, claimable and of a definition served here."""
        found = {"workflow_id": workflow_id, **self._due(fingerprints, lease_ms)}
        return self._claim(found, token, owner, lease_ms, hint=None)

    def claim_any(
        self,
        queues: Sequence[str],
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
    ) -> Stored | None:
        """Take the claim of some due instance of these queues, without regard to priority."""
        found = {"queue": {"$in": list(queues)}, **self._due(fingerprints, lease_ms)}
        return self._claim(found, token, owner, lease_ms, hint=QUEUE_INDEX)

    def renew(self, claims: Iterable[tuple[str, str]], *, lease_ms: int) -> set[str]:
        """Extend claims in one bulk write; return the tokens that are no longer current."""
        wanted = list(claims)
        if not wanted:
            return set()
        later = [{"$set": {"claimable_time": self._clock.now(lease_ms)}}]
        updates = [
            UpdateOne(
                {"workflow_id": wid, "claim_token": token, "status": {"$nin": _TERMINAL}}, later
            )
            for wid, token in wanted
        ]
        with translated():
            result = self._instances.bulk_write(updates, ordered=False)
            if result.matched_count == len(wanted):
                return set()
            held = self._instances.find(
                {"workflow_id": {"$in": [wid for wid, _ in wanted]}, "status": {"$nin": _TERMINAL}},
                {"claim_token": 1},
            )
            current = {document.get("claim_token") for document in held}
        return {token for _, token in wanted if token not in current}

    def now(self) -> datetime:
        """Return the database's now, as every filter and update sees it."""
        with translated():
            rows = self._connection.database.aggregate(
                [{"$documents": [{}]}, {"$project": {"now": self._clock.now()}}]
            )
            moment: datetime = next(iter(rows))["now"]
        return moment

    def document_bytes(self, document: Document) -> int:
        """Return how many bytes the database needs for an instance."""
        return len(bson.encode({key: to_stored(value) for key, value in document.items()}))

    def _due(self, fingerprints: Sequence[str], lease_ms: int) -> Filter:
        due: Filter = {
            "status": {"$in": _CLAIMABLE},
            "definition_fingerprint": {"$in": list(fingerprints)},
            **self._clock.is_past("claimable_time"),
        }
        if self._connection.came_back_within(max(lease_ms / 2000, _HOLDERS_ANSWER_SECONDS)):
            # Leases ran out because nobody could renew them: living holders answer first.
            due["claim_token"] = {"$exists": False}
        return due

    def _claim(
        self, found: Filter, token: str, owner: str, lease_ms: int, *, hint: str | None
    ) -> Stored | None:
        changes = owning.claim_changes(token, owner, lease_ms=lease_ms)
        pipeline = [{"$set": compile_changes(changes, self._clock)}]
        try:
            with translated():
                document = self._instances.find_one_and_update(
                    found, pipeline, return_document=ReturnDocument.AFTER, hint=hint
                )
        except StoreUnavailable:
            # The claim may be ours without our knowing: its token is unique, so look once.
            return self._claimed_unknown(token, lease_ms)
        return _claimed(document, lease_ms)

    def _claimed_unknown(self, token: str, lease_ms: int) -> Stored | None:
        # Not by majority, which may be behind; the begin that comes next is guarded by this token.
        with translated():
            document = self._instances.find_one(
                {"claim_token": token, "status": {"$in": _CLAIMABLE}}
            )
        return _claimed(document, lease_ms)

    def _read(self, found: Filter, *, majority: bool) -> Stored | None:
        source = self._connection.majority(INSTANCES) if majority else self._instances
        with translated():
            rows = list(
                source.aggregate(
                    [{"$match": found}, {"$limit": 1}, {"$addFields": {"_now": self._clock.now()}}]
                )
            )
        if not rows:
            return None
        now = rows[0].pop("_now")
        return Stored(document=from_stored(rows[0]), now=now)


@contextmanager
def _too_large_told() -> Iterator[None]:
    """Tell the server's own size limit as the kernel's error, wherever it shows."""
    try:
        yield
    except DocumentTooLarge as exc:
        raise _too_large() from exc
    except OperationFailure as exc:
        if exc.code in _TOO_LARGE_CODES:
            raise _too_large() from exc
        raise


def _claimed(document: Document | None, lease_ms: int) -> Stored | None:
    if document is None:
        return None
    now = document["claimable_time"] - timedelta(milliseconds=lease_ms)
    return Stored(document=from_stored(document), now=now)


def _too_large() -> ValueTooLarge:
    return ValueTooLarge(
        size_bytes=limits.DOCUMENT_BYTES + 1, limit_bytes=limits.DOCUMENT_BYTES, what="instance"
    )
