"""A great many waiting workflows at once: one that really waits, copied.

Guarantees documents as a suspend, or a refused permit, leaves them. Leaves making the first one to
the caller; hints are not needed for those that a signal wakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from kernel import workflow_id_of

_BATCH = 5_000


def clone_waiting(
    instances: Any, like: str, biz_keys: Iterable[str], *, reason: str | None = None
) -> None:
    """Insert a copy of the waiting instance whose workflow_id is `like`, for each biz_key.

    With `reason`, one that is blocked for that reason: a refused permit suspends nothing.

    Raises:
        RuntimeError: it does not wait.
    """
    waits = {"blocked_on.reason": reason} if reason else {"status": "waiting"}
    original = instances.find_one({"workflow_id": like, **waits}, {"_id": 0})
    if original is None:
        raise RuntimeError(f"{like} does not wait")
    keys = iter(biz_keys)
    while batch := list(itertools.islice(keys, _BATCH)):
        copies = [{**original, "biz_key": key, "workflow_id": workflow_id_of(key)} for key in batch]
        instances.insert_many(copies, ordered=False)
