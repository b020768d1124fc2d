"""Duties that one process at a time should do: a short lease document each (design 2.3).

A dead holder's lease is over by itself; the duty is never a job that needs the duty. A duty's
resumable cursors live in the same document, so that the next holder goes on where it stopped.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, translated
from kernel.store.schema import LEASES


class DutyLeases:
    """Leases by duty name, on the database clock."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._leases = connection.collection(LEASES)
        self._clock = clock

    def acquire(self, duty: str, holder: str, *, lease_ms: int) -> bool:
        """Take the duty if it is free, over, or already ours. On repeat: extended."""
        now = self._clock.now()
        is_over = {"$lte": [{"$ifNull": ["$until", now]}, now]}
        is_ours = {"$eq": [{"$ifNull": ["$holder", None]}, {"$literal": holder}]}
        takes = {"$or": [is_over, is_ours]}
        change = {
            "holder": {"$cond": [takes, {"$literal": holder}, "$holder"]},
            "until": {"$cond": [takes, self._clock.now(lease_ms), "$until"]},
        }
        try:
            with translated():
                after = self._leases.find_one_and_update(
                    {"_id": duty},
                    [{"$set": change}],
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
        except DuplicateKeyError:
            return False  # two first holders at once: the other one was faster
        return after is not None and after["holder"] == holder

    def begin(self, duty: str, *, interval_ms: int) -> bool:
        """Begin a turn of a duty unless one began less than `interval_ms` ago anywhere."""
        now = self._clock.now()
        since = self._clock.now(-interval_ms)
        turn = f"{time.monotonic_ns()}:{secrets.token_hex(8)}"
        is_due = {"$lte": [{"$ifNull": ["$began", since]}, since]}
        change = {
            "began": {"$cond": [is_due, now, "$began"]},
            "turn": {"$cond": [is_due, {"$literal": turn}, "$turn"]},
        }
        try:
            with translated():
                after = self._leases.find_one_and_update(
                    {"_id": duty},
                    [{"$set": change}],
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
        except DuplicateKeyError:
            return False
        return after is not None and after["turn"] == turn

    def release(self, duty: str, holder: str) -> None:
        """Give the duty back early. On repeat, or if it is somebody else's: nothing."""
        with translated():
            self._leases.update_one(
                {"_id": duty, "holder": holder}, [{"$set": {"until": self._clock.now()}}]
            )

    def cursor(self, duty: str, part: str) -> Any:
        """Return where a part of the duty stopped, or None for its beginning."""
        with translated():
            document = self._leases.find_one({"_id": duty}, {f"cursors.{part}": 1})
        return ((document or {}).get("cursors") or {}).get(part)

    def keep_cursor(self, duty: str, holder: str, part: str, cursor: object) -> None:
        """Remember where a part stopped; only the holder may."""
        with translated():
            self._leases.update_one(
                {"_id": duty, "holder": holder}, {"$set": {f"cursors.{part}": cursor}}
            )
