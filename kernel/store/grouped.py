"""Instances in groups: many created or moved by one command, each under its own guard.

Guarantees what the single commands guarantee: the unique indexes decide who creates, a commit is
written only while its guard holds, times are the database's. Leaves to others: what became of a
group of which not all held; its instances are read again and judged by what is stored
(`kernel.signals`, `kernel.reconcile`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pymongo import UpdateOne

from kernel.protocol.apply import apply_changes
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.store.batches import database_now, insert_unordered, update_unordered
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored, to_stored
from kernel.store.compiling import compile_guard, compile_stages
from kernel.store.connection import Connection, translated
from kernel.store.instances import InstanceStore
from kernel.store.port import Stored
from kernel.store.schema import INSTANCES


class GroupedInstances:
    """The `workflow_instances` collection, a group at a time."""

    def __init__(self, connection: Connection, clock: StoreClock, store: InstanceStore) -> None:
        self._connection = connection
        self._instances = connection.collection(INSTANCES)
        self._clock = clock
        self._store = store

    def create_all(self, changes: Sequence[Changes]) -> list[Stored | None]:
        """Insert instances that begin with these fields; None for each whose identity is taken.

        Of two with one identity the first is created. On repeat: None for all. All get one reading
        of the database's clock, taken just before.

        Raises:
            StoreUnavailable: some may be created; repeating is safe.
        """
        now = database_now(self._connection, self._clock)
        documents = [apply_changes({}, fields, now) for fields in changes]
        taken = insert_unordered(self._instances, [to_stored(each) for each in documents])
        return [
            None if number in taken else Stored(document=document, now=now)
            for number, document in enumerate(documents)
        ]

    def commit_all(self, commits: Sequence[Commit]) -> int:
        """Apply commits of different instances; return how many of their guards held.

        Fewer than all: some were written and some not, and the instances tell which; so does one
        that the server refuses. On repeat: a guard that names a revision, token or seq no longer
        holds.

        Raises:
            StoreUnavailable: the outcome is unknown.
        """
        updates = [
            UpdateOne(compile_guard(each.guard), compile_stages(each, self._clock))
            for each in commits
        ]
        return update_unordered(self._instances, updates)

    def read_all(self, workflow_ids: Collection[str]) -> dict[str, Stored]:
        """Return instances whole, by workflow_id, with the database's now."""
        found: list[dict[str, Any]] = [
            {"$match": {"workflow_id": {"$in": list(workflow_ids)}}},
            {"$addFields": {"_now": self._clock.now()}},
        ]
        with translated():
            rows = list(self._instances.aggregate(found))
        return {
            row["workflow_id"]: Stored(now=row.pop("_now"), document=from_stored(row))
            for row in rows
        }
