"""Who of a line may have its free places (design 2.5).

The first that need nothing else, and those for whom everything else they need has a place too. What
has none is looked up for a whole page of the line at once; of those who need it only the first in
line gathers (`kernel.engine.gathering`), the others are passed over, and so are all that need it on
later pages: a resource that is closed holds nobody up who does not need it, however many stand
before him who do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel.engine.gathering import Gathering, Kept
from kernel.protocol.resources import ResourceState
from kernel.store import CapacityStore
from kernel.store.standing import Standing


@dataclass(slots=True, kw_only=True)
class Chosen:
    """Who may go on, and whose line is to be looked at because somebody has moved there.

    `closed` are resources that have no place, or cannot be read; `kept` those who have one there.
    """

    waiters: list[Standing] = field(default_factory=list)
    moved_to: list[str] = field(default_factory=list)
    closed: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    #: What was kept in other resources for those chosen, and given back.
    places: Kept = field(default_factory=Kept)


class Choosing:
    """Chooses among waiters; safe to repeat, and for many processes at once."""

    def __init__(self, store: CapacityStore, gathering: Gathering) -> None:
        self._store = store
        self._gathering = gathering

    def choose(
        self, state: ResourceState, standing: Sequence[Standing], places: int, *, gathers: bool
    ) -> Chosen:
        """Choose up to `places` of a page of the line of `state`; with `gathers` it is the first.

        Raises:
            StoreUnavailable: what was kept runs out.
        """
        chosen = Chosen()
        others = {name for waiter in standing for name in waiter.needs} - {state.name}
        seen = self._store.read_each(sorted(others))[0] if others else {}
        full = {name for name in others if name not in seen or not seen[name].places()}
        chosen.closed = frozenset(full)
        chosen.kept = frozenset(
            each for name in full if name in seen for each in seen[name].reserved
        )
        for waiter in standing:
            if len(chosen.waiters) == places:
                break
            is_first = gathers and waiter is standing[0]
            lacks = any(
                name not in seen or waiter.workflow_id not in seen[name].reserved
                for name in waiter.needs & full
            )
            if lacks and not is_first:
                continue
            if waiter.needs <= {state.name}:
                chosen.waiters.append(waiter)
                continue
            missing = self._gathering.missing(state, waiter, chosen.places, is_first=is_first)
            if missing is None:
                chosen.waiters.append(waiter)
            elif missing:
                chosen.moved_to.append(missing)
        return chosen

    def give_back(self, waiters: Sequence[Standing], chosen: Chosen) -> None:
        """Give back what is kept elsewhere for those who got no place here after all.

        Raises:
            StoreUnavailable: what was kept runs out.
        """
        for waiter in waiters:
            self._gathering.give_back(waiter, chosen.places)
