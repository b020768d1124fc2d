"""Reads for whoever checks stored facts: bounded pages by key, samples, and which indexes exist.

Guarantees that nothing is written, that a page costs its own size however large the collection or
its documents are, and that a document nobody can read, or without a name, is told and not raised.
Leaves judging to `kernel.verifying`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kernel.errors import Unreadable
from kernel.model import InstanceStatus, Signal, WorkflowInstance
from kernel.store.codec import from_stored
from kernel.store.connection import Connection, Document, translated
from kernel.store.legible import instance_of, signal_of
from kernel.store.schema import INSTANCES, SIGNALS
from kernel.store.signals import PENDING

#: A page of instances ends early at about this size: one may be as large as a document can be.
_PAGE_BYTES: Final = 32 << 20
_STATUSES: Final = [status.value for status in InstanceStatus]
#: Unique indexes on which an invariant rests, by collection.
_UNIQUE: Final = {INSTANCES: ("workflow_id", "biz_key"), SIGNALS: ("signal_id",)}


#: Status and round of an instance; None where this version does not know what stands there.
RoundSeen = tuple[InstanceStatus | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document, `key` its own: the instance it is, or what made it unreadable."""

    key: Any
    workflow_id: str
    instance: WorkflowInstance | None
    fault: str = ""
    #: Where the next page begins: what has no name was told before all that has.
    place: str = ""


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
        """Return up to `limit` instances in order of workflow_id after `after`; []: that is all."""
        found = {"workflow_id": {"$gt": after}} if after is not None else {}
        stages: list[Document] = [
            {"$match": found},
            {"$sort": {"workflow_id": 1}},
            {"$limit": limit},
        ]
        return next(self._by_size(stages, most=limit), [])

    def sample(self, count: int, *, page: int) -> Iterator[list[Read]]:
        """Yield pages of instances drawn at random, each once."""
        seen: set[str] = set()
        for reads in self._by_size([{"$sample": {"size": count}}], most=page):
            fresh = {one.workflow_id: one for one in reads if one.workflow_id not in seen}
            yield list(fresh.values())
            seen.update(one.workflow_id for one in reads)

    def _by_size(self, stages: list[Document], *, most: int) -> Iterator[list[Read]]:
        """Yield what the stages find in pages that are full by number or by size."""
        with translated():
            rows = self._instances.aggregate(
                [*stages, {"$set": {"_size": {"$bsonSize": "$$ROOT"}}}]
            )
        with rows:
            while reads := self._filled(rows, most):
                yield reads

    def _filled(self, rows: Iterator[Document], most: int) -> list[Read]:
        reads: list[Read] = []
        size = 0
        while len(reads) < most and size < _PAGE_BYTES:
            with translated():
                row = next(rows, None)
            if row is None:
                break
            size += row.pop("_size")
            reads.append(_read(row))
        return reads

    def rounds(self, workflow_ids: Collection[str]) -> dict[str, RoundSeen]:
        """Return status and round of those that exist, whatever else stands in them."""
        fields = {"workflow_id": 1, "status": 1, "fencing_token": 1}
        with translated():
            rows = self._instances.find({"workflow_id": {"$in": list(workflow_ids)}}, fields)
            return {row["workflow_id"]: _round(row) for row in rows}

    def again(self, reads: Collection[Read]) -> list[Read]:
        """Return these documents as no failover can undo them."""
        majority = self._connection.majority(INSTANCES)
        with translated():
            rows = list(majority.find({"_id": {"$in": [read.key for read in reads]}}))
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
    name = row.get("workflow_id")
    place = name if isinstance(name, str) else ""
    instance, fault = None, ""
    try:
        instance = instance_of(from_stored(row))
    except Unreadable as exc:
        fault = exc.fault
    # Without a name, it is told by its key.
    workflow_id = place or f"_id {row['_id']}"
    return Read(
        key=row["_id"], workflow_id=workflow_id, instance=instance, fault=fault, place=place
    )


def _read_signal(row: Document) -> ReadSignal:
    try:
        return ReadSignal(signal_id=row.get("signal_id"), signal=signal_of(row))
    except Unreadable as exc:
        return ReadSignal(signal_id=row.get("signal_id"), signal=None, fault=exc.fault)
