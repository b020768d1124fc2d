"""Keyset paging: a cursor names the last row seen, by creation time and id.

Guarantees: rows created meanwhile never shift a page; a cursor that is not ours is refused.
Leaves to others: the query (``jobs.services.content.list_jobs``).
"""

import base64
import binascii
import json
from datetime import datetime

from jobs.api.errors import Refusal
from jobs.models import ContentJob, LiveEvent

#: Rows of a page, when the client names no number and at most.
PAGE_ROWS = 50
PAGE_ROWS_MAX = 100
_CURSOR_CHARS = 300

Position = tuple[datetime, str]


def encode_cursor(row: ContentJob | LiveEvent) -> str:
    """Name this row as the last one seen."""
    raw = json.dumps([row.created_at.isoformat(), row.pk]).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_cursor(cursor: str) -> Position:
    """Return the position. Raises: Refusal ``bad-cursor``."""
    if not cursor or len(cursor) > _CURSOR_CHARS or not cursor.isascii():
        raise Refusal("bad-cursor")
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        moment, job_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        created_at = datetime.fromisoformat(moment)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise Refusal("bad-cursor") from None
    if not isinstance(job_id, str) or "\x00" in job_id or created_at.tzinfo is None:
        raise Refusal("bad-cursor")
    return created_at, job_id


def page_rows(wanted: str | None) -> int:
    """Return the number of rows asked for. Raises: Refusal ``bad-filter``."""
    if wanted is None:
        return PAGE_ROWS
    if not (wanted.isascii() and wanted.isdecimal() and 1 <= len(wanted) <= 4):
        raise Refusal("bad-filter", f"`limit` is a number from 1 to {PAGE_ROWS_MAX}.")
    rows = int(wanted)
    if not 1 <= rows <= PAGE_ROWS_MAX:
        raise Refusal("bad-filter", f"`limit` is a number from 1 to {PAGE_ROWS_MAX}.")
    return rows
