"""Read how long the other side asks to be left alone.

Guarantees: seconds between 0 and one day, or None; never raises. Leaves to others: honouring it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: A header cannot put a step to sleep for longer than this, seconds.
MAX_RETRY_AFTER = 86_400.0


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Read `Retry-After` (seconds or a date) or `retry-after-ms`; None when absent or unreadable.

    `headers` must look names up without regard to case, as httpx's do.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if milliseconds.isdecimal():
        return _bounded(int(milliseconds[:12]) / 1000)
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return _bounded(float(value[:12]))
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _bounded((moment - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
