"""Reads for whoever checks stored facts: bounded pages by key, samples, and which indexes exist.

Guarantees that nothing is written, that a page costs its own size however large the collection is,
and that a document nobody can read is told and not raised. Leaves judging to `kernel.verifying`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kernel.errors import Unreadable
from kernel.model import InstanceStatus, Signal, WorkflowInstance
from kernel.store.codec import from_stored
from kernel.store.connection import Connection, Document, translated
from kernel.store.legible import instance_of, signal_of
from kernel.store.schema import INSTANCES, SIGNALS
from kernel.store.signals import PENDING

_STATUSES: Final = [status.value for status in InstanceStatus]
#: Unique indexes on which an invariant rests, by collection.
_UNIQUE: Final = {INSTANCES: ("workflow_id", "biz_key"), SIGNALS: ("signal_id",)}


#: Status and round of an instance; None where this version does not know what stands there.
RoundSeen = tuple[InstanceStatus | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document: the instance it is, or what made it unreadable."""

    workflow_id: str
    instance: WorkflowInstance | None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSignal:
    """A row of the inbox: its id as it is stored, the signal, or what made it unreadable."""

    signal_id: Any
    signal: Signal | None
    fault: str = ""

    @property
    def place(self) -> str:
        """Where the next page begins: what is no text was told before all that is."""
        return self.signal_id if isinstance(self.signal_id, str) else ""


class FactReader:
    """Reads instances and signals from the primary, without changing anything."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._instances = connection.collection(INSTANCES)
        self._signals = connection.collection(SIGNALS)

    def page(self, *, limit: int, after: str | None) -> list[Read]:
        """Return instances in order of workflow_id after `after`."""
        found = {"workflow_id": {"$gt": after}} if after is not None else {}
        with translated():
            rows = list(self._instances.find(found).sort("workflow_id", 1).limit(limit))
        return [_read(row) for row in rows]

    def sample(self, count: int) -> list[Read]:
        """Return instances drawn at random, each once."""
        with translated():
            rows = list(self._instances.aggregate([{"$sample": {"size": count}}]))
        return list({one.workflow_id: one for one in map(_read, rows)}.values())

    def rounds(self, workflow_ids: Collection[str]) -> dict[str, RoundSeen]:
        """Return status and round of those that exist, whatever else stands in them."""
        fields = {"workflow_id": 1, "status": 1, "fencing_token": 1}
        with translated():
            rows = self._instances.find({"workflow_id": {"$in": list(workflow_ids)}}, fields)
            return {row["workflow_id"]: _round(row) for row in rows}

    def again(self, workflow_ids: Collection[str]) -> list[Read]:
        """Return these instances as no failover can undo them."""
        majority = self._connection.majority(INSTANCES)
        with translated():
            rows = list(majority.find({"workflow_id": {"$in": list(workflow_ids)}}))
        return [_read(row) for row in rows]

    def pending(self, *, limit: int, after: str | None) -> list[ReadSignal]:
        """Return pending signals in order of signal_id after `after`.

        The first page tells up to `limit` whose id is no text, which no order places.
        """
        odd: dict[str, Any] = {"status": PENDING, "signal_id": {"$not": {"$type": "string"}}}
        found = {"status": PENDING, "signal_id": {"$gt": after or ""}}
        with translated():
            rows = list(self._signals.find(odd).limit(limit)) if after is None else []
            left = limit - len(rows)
            if left > 0:
                rows += self._signals.find(found).sort("signal_id", 1).limit(left)
        return [_read_signal(row) for row in rows]

    def pending_again(self, signals: Sequence[ReadSignal]) -> list[ReadSignal]:
        """Return those of these signals that are still pending."""
        wanted = [one.signal_id for one in signals]
        with translated():
            rows = list(self._signals.find({"signal_id": {"$in": wanted}, "status": PENDING}))
        return [_read_signal(row) for row in rows]

    def missing_indexes(self) -> list[str]:
        """Name the unique indexes that are not there, as `collection.field`."""
        missing = []
        for name, fields in _UNIQUE.items():
            with translated():
                known = self._connection.collection(name).index_information()
            unique = [index["key"] for index in known.values() if index.get("unique")]
            missing += [f"{name}.{field}" for field in fields if not _is_among(field, unique)]
        return missing


def _is_among(field: str, keys: Sequence[Any]) -> bool:
    return any([name for name, _ in key] == [field] for key in keys)


def _round(row: Document) -> RoundSeen:
    status, number = row.get("status"), row.get("fencing_token")
    known = InstanceStatus(status) if status in _STATUSES else None
    return known, int(number) if isinstance(number, int) else None


def _read(row: Document) -> Read:
    workflow_id = str(row.get("workflow_id"))
    try:
        instance = instance_of(from_stored(row))
    except Unreadable as exc:
        return Read(workflow_id=workflow_id, instance=None, fault=exc.fault)
    return Read(workflow_id=workflow_id, instance=instance)


def _read_signal(row: Document) -> ReadSignal:
    try:
        return ReadSignal(signal_id=row.get("signal_id"), signal=signal_of(row))
    except Unreadable as exc:
        return ReadSignal(signal_id=row.get("signal_id"), signal=None, fault=exc.fault)
