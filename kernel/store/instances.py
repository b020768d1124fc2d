"""Instances: created once, changed by guarded commits, claimed for a while (design 1.4).

Every write is one conditional update on the database clock. An error in its answer leaves open
whether it was applied; that is told as StoreUnavailable, and the caller re-reads by token and seq.

Guarantees that a commit is written only while its guard holds, alone or in a group. Leaves to
others: claims (`kernel.store.claiming`), what becomes of a group (`kernel.store.group_commits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import bson
from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, PyMongoError

from kernel import limits
from kernel.errors import ValueTooLarge
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.store.batches import database_now
from kernel.store.claiming import InstanceClaims
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored, to_stored
from kernel.store.compiling import Filter, compile_changes, compile_guard, compile_stages
from kernel.store.connection import Connection, Document, is_too_large, translated
from kernel.store.group_commits import commit_group
from kernel.store.grouping import Grouping, Others
from kernel.store.port import Stored
from kernel.store.schema import INSTANCES


class InstanceStore(InstanceClaims):
    """The `workflow_instances` collection behind the protocol's commits.

    `group_max` bounds how many commits of this process may travel in one command.
    """

    def __init__(
        self,
        connection: Connection,
        clock: StoreClock,
        *,
        group_max: int = limits.GROUP_COMMITS,
        others: Others | None = None,
    ) -> None:
        super().__init__(connection, clock)
        self._committer = Grouping(self._commit_group, most=group_max, others=others)

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

    def commit_grouped(self, commit: Commit) -> bool:
        """Apply a holder's commit as `commit` does, together with those of this process's others.

        A commit that moves no step goes alone: its own effect could not be told from its answer.
        """
        return self._committer(commit) if commit.guard.step_seqs else self.commit(commit)

    def now(self) -> datetime:
        """Return the database's now, as every filter and update sees it."""
        return database_now(self._connection, self._clock)

    def document_bytes(self, document: Document) -> int:
        """Return how many bytes the database needs for an instance."""
        return len(bson.encode({key: to_stored(value) for key, value in document.items()}))

    def _commit_group(self, commits: Sequence[Commit]) -> list[bool | Exception]:
        if len(commits) == 1:
            return [self.commit(commits[0])]
        return commit_group(self._instances, self._clock, commits)

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
    except PyMongoError as exc:
        if is_too_large(exc):
            raise _too_large() from exc
        raise


def _too_large() -> ValueTooLarge:
    return ValueTooLarge(
        size_bytes=limits.DOCUMENT_BYTES + 1, limit_bytes=limits.DOCUMENT_BYTES, what="instance"
    )
