"""How a waiter gathers places of several resources without starving, and without a deadlock (2.5).

Places come free one at a time, and each would go to somebody who needs only that one. So the first
in line of a resource may keep its place while it waits for the next one:

- it looks at what it needs in the order of the names. The first that has no place for it is what it
  waits for from now on: it moves to that line, with the age it has;
- of those before it in that order it keeps a place each; of those behind it, none. So whoever keeps
  a place waits only for names that come later, holders wait for nothing, and no circle can close;
- one workflow at a time gathers on a resource: one place at most is kept idle;
- a place is kept for as long as its waiter has waited so far (half a minute at least, an hour at
  most), so it is idle no longer than that, and the next time it is kept for longer.

| killed between | facts left | who completes it |
|---|---|---|
| keep / move | a place kept for 5 s of who stands where it stood | it runs out, then tick |
| move / keep on | one in another line, a place kept for 5 s | it runs out; it comes back in time |
| overtaken / give back | a place kept for 5 s, in vain | it runs out, then tick |

Guarantees that a waiter keeps places of all it needs before it is let go, and none that were newly
kept for it when it is overtaken. Leaves to others: whose turn it is (`kernel.engine.handing_on`),
and places of waiters that are gone (reconcile).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kernel import limits
from kernel.errors import Unreadable
from kernel.protocol import queueing
from kernel.protocol.resources import ResourceState
from kernel.store import CapacityStore, Waiters
from kernel.store.standing import Standing

log: Final = logging.getLogger("baton.capacity")

_FIRST_MS: Final = 1000 * limits.RESERVATION_SECONDS


@dataclass(slots=True)
class Kept:
    """Places that were newly kept in other resources, by workflow, and those given back in vain.

    While they were kept somebody else may have found none there: it is for who keeps them to look.
    """

    new: dict[str, list[str]] = field(default_factory=dict)
    given_back: set[str] = field(default_factory=set)


class Gathering:
    """Keeps places for those that need several; safe to repeat, and for many processes at once."""

    def __init__(self, store: CapacityStore, waiters: Waiters) -> None:
        self._store = store
        self._waiters = waiters

    def missing(
        self, state: ResourceState, waiter: Standing, kept: Kept, *, is_first: bool
    ) -> str | None:
        """Keep a place in every other resource it needs; None: all are kept, it may go on.

        Else the name in whose line it stands now, or "" if it stands where it stood: in that of
        `state`, which has a place. What cannot be read has no place, and nobody moves there.

        Raises:
            StoreUnavailable: what was kept runs out.
        """
        new = kept.new.setdefault(waiter.workflow_id, [])
        for name in sorted(waiter.needs - {state.name}):
            try:
                other = self._store.reserve(name, [waiter.workflow_id])
            except Unreadable as exc:
                log.error("no place for %s: %s", waiter.workflow_id, exc)
                self.give_back(waiter, kept)
                return ""
            if waiter.workflow_id not in other.reserved:
                if is_first and waiter.is_plain and self._moves(state, waiter, name):
                    return name
                self.give_back(waiter, kept)
                return ""
            if waiter.workflow_id in other.handed:
                new.append(name)
        return None

    def give_back(self, waiter: Standing, kept: Kept) -> None:
        """Give back what was newly kept for one that does not go on. On repeat: nothing."""
        names = kept.new.pop(waiter.workflow_id, [])
        kept.given_back.update(names)
        self._let_go(waiter, names)

    def _moves(self, state: ResourceState, waiter: Standing, missing: str) -> bool:
        """Let it wait for `missing`, keeping what comes before that in order."""
        kept = [name for name in sorted(waiter.needs) if name < missing]
        if not all(self._keep(name, waiter, _FIRST_MS) for name in kept):
            self._let_go(waiter, [state.name] if state.name in kept else [])
            return False
        waited = (state.now - waiter.since).total_seconds()
        longest = min(limits.GATHERING_SECONDS_MAX, max(limits.GATHERING_SECONDS, waited))
        for_ms = int(1000 * longest)
        resources = sorted({*waiter.resources, missing} - {state.name})
        commit = queueing.move(
            waiter.workflow_id,
            waiter.revision,
            waiter.steps,
            resources,
            for_ms=for_ms if kept else None,
        )
        if not self._waiters.move(commit):
            self._let_go(waiter, kept)
            return False
        for name in kept:
            self._keep(name, waiter, for_ms)
        return True

    def _keep(self, name: str, waiter: Standing, for_ms: int) -> bool:
        return self._store.gather(name, waiter.workflow_id, for_ms=for_ms)

    def _let_go(self, waiter: Standing, names: Sequence[str]) -> None:
        for name in names:
            self._store.unreserve(name, [waiter.workflow_id])
