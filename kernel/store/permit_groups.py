"""Acquires and releases of several claims of a process, one update a resource and group (1.8).

What gathers for a resource while one update is on its way travels in the next. Guarantees the same
answers as one by one: each owner is granted or refused in order, and reads its answer from the
resource as it is afterwards. Leaves to others: what an error means (each caller asks again).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kernel.protocol.resources import PermitOwner, ResourceState
from kernel.store.capacity import CapacityStore
from kernel.store.grouping import Grouping

#: An owner that wants a permit, and the one that passes its own on to it.
_Wanted = tuple[PermitOwner, PermitOwner | None]
#: Whose permit, whether it was used, and whom a place may be kept for.
_Left = tuple[PermitOwner, bool, tuple[str, ...]]

_MOST: Final = 64
#: Resources whose callers are grouped; with more names than this in one process they go alone.
_RESOURCES_MAX: Final = 1_000


class PermitGroups:
    """The grouped half of a `CapacityStore`; thread-safe."""

    def __init__(self, store: CapacityStore, *, lease_ms: int) -> None:
        self._store = store
        self._lease_ms = lease_ms
        self._lock = threading.Lock()
        self._coming: dict[str, Grouping[_Wanted, ResourceState]] = {}
        self._going: dict[str, Grouping[_Left, ResourceState]] = {}

    def acquire(
        self, resource: str, owner: PermitOwner, *, leaving: PermitOwner | None = None
    ) -> ResourceState:
        """Ask for one permit; `state.holds(owner)` is the answer. On repeat: renewed.

        Raises:
            StoreUnavailable: not known; ask again.
        """
        with self._lock:
            group = self._coming.get(resource)
            if group is None and len(self._coming) < _RESOURCES_MAX:
                group = Grouping(lambda items: self._acquire(resource, items), most=_MOST)
                self._coming[resource] = group
        wanted = (owner, leaving)
        return group(wanted) if group is not None else self._acquire(resource, [wanted])[0]

    def release(
        self,
        resource: str,
        owner: PermitOwner,
        *,
        unused: bool = False,
        then_reserve: tuple[str, ...] = (),
    ) -> ResourceState:
        """Give one permit back, and keep its place for the first of these that has none.

        Those that `handed` names are for this caller to make due. On repeat: nothing.

        Raises:
            StoreUnavailable: not known; try again.
        """
        with self._lock:
            group = self._going.get(resource)
            if group is None and len(self._going) < _RESOURCES_MAX:
                group = Grouping(lambda items: self._release(resource, items), most=_MOST)
                self._going[resource] = group
        left = (owner, unused, then_reserve)
        return group(left) if group is not None else self._release(resource, [left])[0]

    def _acquire(self, resource: str, wanted: Sequence[_Wanted]) -> list[ResourceState]:
        state = self._store.acquire(
            resource,
            [owner for owner, _ in wanted],
            lease_ms=self._lease_ms,
            leaving=[leaving for _, leaving in wanted if leaving is not None],
        )
        return [state] * len(wanted)

    def _release(self, resource: str, left: Sequence[_Left]) -> list[ResourceState]:
        unused = [owner for owner, is_unused, _ in left if is_unused]
        used = [owner for owner, is_unused, _ in left if not is_unused]
        following = [each for _, _, those in left for each in those]
        state = self._store.release(resource, unused, unused=True) if unused else None
        if used or state is None:
            state = self._store.release(resource, used, then_reserve=following)
        # Each that was handed a place is made due by one caller, the first that knows it.
        open_ones = set(state.handed) if following else set()
        answers: list[ResourceState] = []
        for _, _, those in left:
            mine = tuple(each for each in those if each in open_ones)
            open_ones.difference_update(mine)
            answers.append(replace(state, handed=mine))
        return answers
