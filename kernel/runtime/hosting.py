"""What a worker's processes need of a kernel beside running claims (design 1.5, 2.4).

Guarantees that each part is built for this process. Leaves to others: starting and stopping them at
the right moments of the host's life.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from kernel.config import KernelConfig
from kernel.errors import StoreUnavailable
from kernel.keeper import ChildKeeper, ClaimSlots, Keeper
from kernel.keeper.freeing import free_claim
from kernel.runtime.wiring import Parts
from kernel.slot import WorkerSlot
from kernel.store import Served


class Hosting:
    """The half of a kernel that a pool's main process and children use."""

    config: KernelConfig
    _parts: Parts

    def build_keeper(self, slots: ClaimSlots, *, queues: Callable[[], Sequence[str]]) -> Keeper:
        """Return the keeper of a worker's children, for its main process (design 1.5).

        `queues()` are those the worker serves; definitions registered here are what it can run.
        """
        return Keeper(
            slots,
            store=self._parts.store,
            renewal=self._parts.renewal,
            handing_on=self._parts.permits.handing_on,
            beats=self._parts.beats,
            hints=self._parts.hints,
            owner=self._parts.owner,
            lease_ms=self.config.lease_ms,
            queues=queues,
            served=[
                Served(definition.plan.type, definition.plan.fingerprint)
                for definition in self._parts.registry.definitions()
                if definition.plan.type not in self.config.types_off
            ],
            bounded=self._parts.connection.bounded,
        )

    def free_left_behind(self) -> int:
        """Free what the predecessor of this child died with; call it once when a child starts.

        Returns how many claims were freed. On repeat: they have moved on, nothing happens.
        """
        keeper = self._parts.keeper
        left = keeper.left_behind if isinstance(keeper, ChildKeeper) else ()
        freed = 0
        for claim in left:
            with suppress(StoreUnavailable):  # then its lease ends by itself
                freed += free_claim(
                    self._parts.store,
                    self._parts.hints,
                    self._parts.permits.handing_on,
                    workflow_id=claim.workflow_id,
                    token=claim.token,
                    culprit=None,
                )
        return freed

    def build_slot(
        self, queues: Callable[[], Sequence[str]], *, poll_interval: float
    ) -> WorkerSlot:
        """Return the slot of a pool child: its wakeups and its polling take turns in it."""
        drain = self._parts.drain
        return WorkerSlot(
            drain.drain, poll=drain.poll, ring_if_due=drain.ring_if_due, queues=queues,
            is_wide=drain.is_wide, poll_interval=poll_interval,
        )  # fmt: skip
