"""Part 5: permits and reservations of claims that no longer exist are free (design 2.5).

The holders are read first, then the instances: whoever took a permit between the two readings is
not among the holders read, and whoever is held a claim before its instance is read. The other order
would free permits of the living. A permit passed on has no claim yet: it is let alone until its
claim can no longer be taken (`kernel.engine.passing`).
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from kernel import limits
from kernel.engine.permits import PermitDesk
from kernel.reconcile.turn import Turn
from kernel.store import DutyLeases

log: Final = logging.getLogger("baton.reconcile")

PART: Final = "ended_permits"
#: Its second cursor: resources somebody waits for, of more than one look takes.
_LINES: Final = "ended_permits_lines"
#: Resources this version cannot read that one run speaks of.
_TOLD: Final = 10


def free_ended_permits(
    permits: PermitDesk,
    leases: DutyLeases,
    *,
    duty: str,
    holder: str,
    limit: int,
) -> Turn:
    """Look at up to `limit` resources, going on where the last run stopped; hand on what is free.

    Resources somebody waits for, though nothing says so any more, get their line back. Those that
    cannot be read are said and left as they are.
    """
    store, waiters, handing_on = permits.store, permits.waiters, permits.handing_on
    after = leases.cursor(duty, PART)
    # The time in which the claim of a passed permit is taken, and as much again for other clocks.
    young = timedelta(seconds=2 * limits.PASSING_SECONDS)
    states = store.occupied(limit=limit, after=after)
    # What is over counts for nobody and is dropped by the next update, which may never come.
    store.drop_over([state.name for state in states])
    freed = 0
    for state in states:
        tokens = waiters.tokens_of([held.owner.workflow_id for held in state.holders])
        ended = [
            held.owner
            for held in state.holders
            if tokens[held.owner.workflow_id] != held.owner.token and held.since < state.now - young
        ]
        if ended:
            freed += len(ended)
            handing_on.hand_on(state.name, store.release(state.name, ended))
        waits = waiters.still_waiting(state.gathering) if state.gathering else set()
        if gone := [each for each in state.gathering if each not in waits]:
            freed += len(gone)
            store.unreserve(state.name, gone)
            handing_on.hand_on(state.name)
    cursor = states[-1].name if len(states) == limit else None
    if cursor is not None or after is not None:
        leases.keep_cursor(duty, holder, PART, cursor)
    if cursor is None:
        for why in store.foreign(limit=_TOLD):
            log.error("passed over: %s", why)
        before = leases.cursor(duty, _LINES)
        names = waiters.waited_for(limit=limit, after=before)
        handing_on.look_again(names)
        behind = names[-1] if len(names) == limit else None
        if behind is not None or before is not None:
            leases.keep_cursor(duty, holder, _LINES, behind)
    return Turn(freed, is_full=cursor is not None)
