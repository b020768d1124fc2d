"""The database's clock: no worker clock takes part in any decision (design 1.3).

Filters compare with `$$NOW`, updates add to it. Tests shift time by one explicit offset, which is
added here and handed to every Lua call and to the outbox; in production it is zero.
"""

from __future__ import annotations

from typing import Any

Expr = dict[str, Any] | str


class StoreClock:
    """The one place that knows the test offset, in milliseconds."""

    def __init__(self, offset_ms: int = 0) -> None:
        self.offset_ms = offset_ms

    def now(self, plus_ms: int = 0) -> Expr:
        """Return the aggregation expression for now plus milliseconds."""
        shift = self.offset_ms + plus_ms
        return {"$add": ["$$NOW", shift]} if shift else "$$NOW"

    def is_past(self, path: str) -> dict[str, Any]:
        """Return a filter for "this time has come"; such a field is never null (design 1.3)."""
        return {"$expr": {"$lte": [f"${path}", self.now()]}}
