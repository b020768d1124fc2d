"""The signal inbox: facts that something changed, kept until they have woken somebody (design 4).

A signal is identity only. It is inserted before any activation is tried, so that one which comes
early, or whose sender dies, is still there when its workflow begins to wait. One that this version
cannot read is passed over wherever signals are read, and stays pending for a process that can.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from pymongo.errors import DuplicateKeyError

from kernel import limits
from kernel.model import Signal, Wait
from kernel.store.batches import database_now, insert_unordered
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, translated
from kernel.store.grouping import Grouping
from kernel.store.legible import legible_signals, signal_of
from kernel.store.schema import SIGNAL_ID_INDEX, SIGNALS

PENDING: Final = "pending"
MATCHED: Final = "matched"
UNMATCHED: Final = "unmatched"

#: Pages looked at, at most, for one with a signal that can be read.
_PAGES_PAST: Final = 20


class SignalInbox:
    """The `workflow_signals` collection; `signal_id` is unique for ever it is remembered."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._connection = connection
        self._signals = connection.collection(SIGNALS)
        self._clock = clock
        self._marks: Grouping[tuple[str, ...], None] = Grouping(
            self._mark_all, most=limits.GROUP_COMMITS
        )

    def insert(self, signal: Signal) -> bool:
        """Record a signal as pending. On repeat of its id: False, and nothing is written."""
        fields = signal.model_dump(exclude={"status", "created_at"})
        change: dict[str, Any] = {key: {"$literal": value} for key, value in fields.items()}
        change |= {"status": PENDING, "created_at": self._clock.now()}
        is_new = {"$eq": [{"$type": "$status"}, "missing"]}
        merged = {"$cond": [is_new, {"$mergeObjects": ["$$ROOT", change]}, "$$ROOT"]}
        try:
            with translated():
                result = self._signals.update_one(
                    {"signal_id": signal.signal_id}, [{"$replaceWith": merged}], upsert=True
                )
        except DuplicateKeyError:
            return False
        return result.upserted_id is not None

    def insert_all(self, signals: Sequence[Signal]) -> list[bool]:
        """Record signals as pending; tells of each whether it is new. On repeat: False.

        Of two with one id the first is recorded. All get one reading of the database's clock.

        Raises:
            StoreUnavailable: some may be recorded; repeating is safe.
        """
        if len(signals) == 1:
            return [self.insert(signals[0])]
        created = {"status": PENDING, "created_at": database_now(self._connection, self._clock)}
        rows = [one.model_dump(exclude={"status", "created_at"}) | created for one in signals]
        taken = insert_unordered(self._signals, rows)
        return [number not in taken for number in range(len(signals))]

    def get_all(self, signal_ids: Sequence[str]) -> dict[str, Signal]:
        """Return the recorded ones of these signals that can be read, by id."""
        if not signal_ids:
            return {}
        with translated():
            found = self._signals.find(
                {"signal_id": {"$in": list(signal_ids)}},
                hint=SIGNAL_ID_INDEX,
                batch_size=len(signal_ids) + 1,
            )
            rows = list(found)
        return {signal.signal_id: signal for signal in legible_signals(rows)}

    def get(self, signal_id: str) -> Signal | None:
        """Return a signal by its id, or None. Raises: Unreadable."""
        with translated():
            row = self._signals.find_one({"signal_id": signal_id})
        return signal_of(row) if row is not None else None

    def pending_of(self, workflow_id: str, waits: Sequence[Wait]) -> list[Signal]:
        """Return the pending signals that end one of a workflow's waits, oldest first.

        Those for which nobody waits are passed over, however many have come before, and those
        nobody here can read.
        """
        wanted: list[dict[str, Any]] = [
            {name: getattr(wait, name) for name in ("signal_type", "wait_key", "generation")}
            for wait in waits
        ]
        found: dict[str, Any] = {"workflow_id": workflow_id, "status": PENDING, "$or": wanted}
        most = limits.SIGNALS_READ
        for page in range(_PAGES_PAST):
            with translated():
                rows = self._signals.find(found).sort("created_at", 1)
                pending = list(rows.skip(page * most).limit(most))
            read = list(legible_signals(pending))
            if read or len(pending) < most:
                return read
        return []

    def pending_page(self, *, limit: int, after: str | None) -> list[Signal]:
        """Return pending signals in order of signal_id after `after`, for reconciliation.

        Those nobody here can read are passed over; fewer than `limit` are the last. One whose id is
        no text stands on no page (`FactReader.pending` tells it).
        """
        found: dict[str, Any] = {"status": PENDING, "signal_id": {"$gt": after or ""}}
        read: list[Signal] = []
        while len(read) < limit:
            with translated():
                rows = list(self._signals.find(found).sort("signal_id", 1).limit(limit))
            read += legible_signals(rows)
            if len(rows) < limit:
                break
            found["signal_id"] = {"$gt": rows[-1]["signal_id"]}
        return read[:limit]

    def mark(self, signal_ids: Sequence[str]) -> None:
        """Mark as matched what woke a step, for the holder of its claim. On repeat: nothing.

        Holders of one process are served together, and without a write where whoever delivered
        the signals has marked them for good: only what no failover can undo counts as marked.
        """
        self._marks(tuple(signal_ids))

    def _mark_all(self, groups: Sequence[tuple[str, ...]]) -> list[Exception | None]:
        wanted = set(chain.from_iterable(groups))
        with translated():
            rows = self._connection.majority(SIGNALS).find(
                {"signal_id": {"$in": list(wanted)}, "status": {"$ne": PENDING}},
                {"signal_id": 1},
                hint=SIGNAL_ID_INDEX,
            )
            marked = {row["signal_id"] for row in rows}
        self.close(sorted(wanted - marked), MATCHED)
        return [None] * len(groups)

    def close(self, signal_ids: Sequence[str], status: str) -> None:
        """Mark pending signals as matched or unmatched. On repeat: they stay as they are."""
        if not signal_ids:
            return
        closed = {
            "status": status,
            "closed_at": self._clock.now(),
            "expires_at": self._clock.now(1000 * limits.SIGNAL_MEMORY_SECONDS),
        }
        with translated():
            self._signals.update_many(
                {"signal_id": {"$in": list(signal_ids)}, "status": PENDING},
                [{"$set": closed}],
                hint=SIGNAL_ID_INDEX,
            )
