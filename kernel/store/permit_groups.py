"""Permits of several claims of a process, one update a resource and group (1.8).

What gathers for a resource while one update is on its way travels in the next, whether it comes or
leaves. Guarantees the same answers as one by one: each owner is granted or refused in order, and
reads its answer from the resource as it is afterwards. Leaves to others: what an error means (each
caller asks again).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kernel.errors import Unreadable
from kernel.protocol.resources import PermitOwner, ResourceState
from kernel.store.capacity import CapacityStore
from kernel.store.exchanging import Leaving
from kernel.store.grouping import Grouping

_MOST: Final = 64
#: Resources whose callers are grouped; with more names than this in one process they go alone.
_RESOURCES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What one caller wants of a resource: one to leave, one to come, or both."""

    leaving: Leaving | None = None
    wanted: PermitOwner | None = None


class PermitGroups:
    """The grouped half of a `CapacityStore`; thread-safe."""

    def __init__(self, store: CapacityStore, *, lease_ms: int) -> None:
        self._store = store
        self._lease_ms = lease_ms
        self._lock = threading.Lock()
        self._groups: dict[str, Grouping[_Asked, ResourceState]] = {}
        self._unasked: Counter[str] = Counter()
        self._leaving: dict[str, list[Leaving]] = {}
        #: Told of a resource where somebody waits by the time what was postponed is given back.
        self.when_waited_for: Callable[[str], None] = lambda _: None

    def acquire(
        self, resource: str, owner: PermitOwner, *, leaving: PermitOwner | None = None
    ) -> ResourceState:
        """Ask for one permit; `state.holds(owner)` is the answer. On repeat: renewed.

        `leaving` gives its own back in the same update.

        Raises:
            StoreUnavailable: not known; ask again.
        """
        left = Leaving(owner=leaving) if leaving is not None else None
        return self._ask(resource, _Asked(leaving=left, wanted=owner))

    def release(self, resource: str, leaving: Leaving) -> ResourceState:
        """Give one permit back, and have its place passed on or kept.

        Those that `handed` names are for this caller to make due. On repeat: nothing.

        Raises:
            StoreUnavailable: not known; try again.
        """
        return self._ask(resource, _Asked(leaving=leaving))

    def release_later(self, resource: str, owner: PermitOwner) -> None:
        """Give one permit back with the next update of any kind, or with `flush`.

        A process that dies before leaves it to its lease.
        """
        with self._lock:
            self._leaving.setdefault(resource, []).append(Leaving(owner=owner))

    def postponed(self) -> list[str]:
        """Return the resources for which permits are to be given back yet."""
        with self._lock:
            return list(self._leaving)

    def flush(self, resource: str, *, refusals: bool = False) -> ResourceState | None:
        """Give back what was postponed; None: nothing was. `refusals` are a reason as well.

        Raises:
            StoreUnavailable: not known; it stays postponed.
            Unreadable: this version does not know what stands there; it is left to its lease.
        """
        with self._lock:
            is_needed = resource in self._leaving or (refusals and resource in self._unasked)
        return self._ask(resource, _Asked()) if is_needed else None

    def refuse(self, resource: str) -> int:
        """Count a refusal made on what is known; it is written with the next update of any kind.

        Returns how many are to be written. A process that dies before only leaves a line that is
        thought to be shorter than it is.
        """
        with self._lock:
            self._unasked[resource] += 1
            return self._unasked[resource]

    def unasked(self, resource: str) -> int:
        """Return how many refusals are to be written."""
        with self._lock:
            return self._unasked.get(resource, 0)

    def _ask(self, resource: str, asked: _Asked) -> ResourceState:
        with self._lock:
            group = self._groups.get(resource)
            if group is None and len(self._groups) < _RESOURCES_MAX:
                group = Grouping(lambda items: self._send(resource, items), most=_MOST)
                self._groups[resource] = group
        return group(asked) if group is not None else self._send(resource, [asked])[0]

    def _send(self, resource: str, group: Sequence[_Asked]) -> list[ResourceState]:
        leaving = [asked.leaving for asked in group if asked.leaving is not None]
        with self._lock:
            unasked = self._unasked.pop(resource, 0)
            postponed = self._leaving.pop(resource, [])
        try:
            state = self._store.exchange(
                resource,
                leaving=[*postponed, *leaving],
                wanted=[asked.wanted for asked in group if asked.wanted is not None],
                lease_ms=self._lease_ms,
                unasked=unasked,
            )
        except Unreadable:
            raise  # what is held there ends with its lease, and a line is nothing we know of
        except BaseException:
            with self._lock:
                if unasked:
                    self._unasked[resource] += unasked
                if postponed:
                    self._leaving.setdefault(resource, []).extend(postponed)
            raise
        if postponed and state.line:
            self.when_waited_for(resource)
        # Each that was handed a place is made due by one caller, the first that knows it.
        open_ones = set(state.handed) if any(each.then_reserve for each in leaving) else set()
        answers: list[ResourceState] = []
        for asked in group:
            those = asked.leaving.then_reserve if asked.leaving is not None else ()
            mine = tuple(each for each in those if each in open_ones)
            open_ones.difference_update(mine)
            answers.append(replace(state, handed=mine) if state.handed or mine else state)
        return answers
