"""Unordered bulk commands, and what the errors in their answers mean.

Each statement of a bulk stands alone: one that meets a duplicate, or whose guard no longer holds,
stops none of the others. An answer that leaves open what became of any of them is
StoreUnavailable: the caller repeats, which its guards and unique indexes make safe.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pymongo import UpdateOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError

from kernel.errors import InvariantViolation, StoreUnavailable
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection, Document, is_passing_code, translated

log: Final = logging.getLogger("baton.store")

_DUPLICATE_KEY: Final = 11000


def database_now(connection: Connection, clock: StoreClock) -> datetime:
    """Read the database's clock once, for all documents of a bulk."""
    with translated():
        rows = connection.database.aggregate(
            [{"$documents": [{}]}, {"$project": {"now": clock.now()}}]
        )
        moment: datetime = next(iter(rows))["now"]
    return moment


def insert_unordered(collection: Collection[Document], documents: Sequence[Document]) -> set[int]:
    """Insert what is new; return the positions of those whose unique key was taken.

    Raises:
        StoreUnavailable: some may be stored and some not.
        InvariantViolation: the server refuses a document as such; the others are stored.
    """
    if not documents:
        return set()
    with translated():
        try:
            collection.insert_many(documents, ordered=False)
        except BulkWriteError as exc:
            return duplicates_of(exc.details)
    return set()


def update_unordered(collection: Collection[Document], updates: Sequence[UpdateOne]) -> int:
    """Send guarded updates; return how many of their guards held and were written.

    One that the server refuses as such counts as not held, and is logged: the others are stored.

    Raises:
        StoreUnavailable: some may be stored and some not.
    """
    if not updates:
        return 0
    with translated():
        try:
            return int(collection.bulk_write(updates, ordered=False).matched_count)
        except BulkWriteError as exc:
            try:
                duplicates_of(exc.details)
            except InvariantViolation as refused:
                log.error("%s", refused)
            return int(exc.details["nMatched"])


def duplicates_of(answer: Mapping[str, Any] | None) -> set[int]:
    """Return the positions that a bulk's answer tells as duplicates.

    Raises:
        StoreUnavailable: something else, which a later try may not meet.
        InvariantViolation: a statement was refused as such.
    """
    answer = answer or {}
    errors = answer.get("writeErrors", [])
    others = [error for error in errors if error.get("code") != _DUPLICATE_KEY]
    passing = [error for error in others if is_passing_code(error.get("code"))]
    if passing or answer.get("writeConcernErrors"):
        told = (passing or answer["writeConcernErrors"])[0].get("errmsg", "")
        raise StoreUnavailable(f"MongoDB did not confirm all of a bulk: {str(told)[:200]}")
    if others:
        first, told = others[0].get("index"), str(others[0].get("errmsg", ""))[:200]
        raise InvariantViolation(
            f"MongoDB refused {len(others)} of a bulk, the first at {first}: {told}"
        )
    return {int(error["index"]) for error in errors}
