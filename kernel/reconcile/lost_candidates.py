"""Part 2: a claimable instance stands in its own lane (design 2.3).

Never queued, lost by Redis, or left by a dead holder: whatever the reason, due means that somebody
should look. Pushing is harmless to repeat, so nothing needs to be known about the lanes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from kernel.engine.hinting import HintWriter, as_ms
from kernel.hints import Candidate
from kernel.reconcile.turn import Turn
from kernel.store import DutyLeases, InstanceScan
from kernel.store.scanning import Cursor

PART: Final = "lost_candidates"


def push_lost_candidates(
    scan: InstanceScan,
    hints: HintWriter,
    leases: DutyLeases,
    *,
    duty: str,
    holder: str,
    limit: int,
) -> Turn:
    """Push up to `limit` due instances into their lanes, going on where the last run stopped."""
    stopped = leases.cursor(duty, PART)
    after = _place(stopped)
    rows = scan.due_claimable(limit=limit, after=after)
    by_queue: dict[str, list[Candidate]] = defaultdict(list)
    for row in rows:
        at_ms = as_ms(row["claimable_time"])
        by_queue[row["queue"]].append(Candidate(row["workflow_id"], row["priority"], at_ms))
    lost = sum(hints.hints.push_all(queue, found) for queue, found in by_queue.items())
    last = rows[-1] if len(rows) == limit else None
    cursor = last and {"time": last["claimable_time"], "workflow_id": last["workflow_id"]}
    if cursor is not None or stopped is not None:
        leases.keep_cursor(duty, holder, PART, cursor)
    for queue in by_queue:
        hints.ring(queue)
    return Turn(lost, is_full=last is not None)


def _place(stopped: object) -> Cursor | None:
    """Return where to go on; what another version left, or a hand, means the beginning."""
    if not isinstance(stopped, Mapping):
        return None
    moment, workflow_id = stopped.get("time"), stopped.get("workflow_id")
    if isinstance(moment, datetime) and isinstance(workflow_id, str):
        return moment, workflow_id
    return None
