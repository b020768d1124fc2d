"""A great many workflows at once: one that is really there, copied.

Guarantees documents as the engine leaves them, be it by a suspend, a refused permit or a start.
Leaves making the first one to the caller; hints are not needed for those that a signal wakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
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
    clone(instances, like, biz_keys, found=waits)


def clone(
    instances: Any,
    like: str,
    biz_keys: Iterable[str],
    *,
    found: Mapping[str, Any],
    own: Callable[[int], dict[str, Any]] = lambda _: {},
) -> None:
    """Insert copies of an instance that is as `found` says; `own(n)` are fields of the n-th copy.

    Raises:
        RuntimeError: it is not.
    """
    original = instances.find_one({"workflow_id": like, **found}, {"_id": 0})
    if original is None:
        raise RuntimeError(f"{like} is not as {dict(found)}")
    keys = enumerate(biz_keys)
    while batch := list(itertools.islice(keys, _BATCH)):
        copies = [
            {**original, "biz_key": key, "workflow_id": workflow_id_of(key), **own(number)}
            for number, key in batch
        ]
        instances.insert_many(copies, ordered=False)
