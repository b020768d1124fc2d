"""The child's side: publishes claims, heeds lost flags, renews itself if the keeper is silent.

Guarantees that what the slot says is what this child holds, written by this child alone. Leaves to
the keeper: renewing, and ending this process when it hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kernel.engine.claims import LiveClaim
from kernel.engine.heartbeat import renew_claims
from kernel.engine.renewing import LeaseRenewal
from kernel.errors import KernelError
from kernel.keeper.processes import Process
from kernel.keeper.slots import CLAIMS, ClaimSlots, PublishedClaim

log: Final = logging.getLogger("baton.keeper")

#: How often a child with claims looks at the keeper's areas, seconds.
_LOOK_SECONDS: Final = 0.1


class ChildKeeper:
    """Takes the place of the heartbeat thread in a worker's child."""

    def __init__(
        self, slots: ClaimSlots, index: int, *, renewal: LeaseRenewal, lease_ms: int
    ) -> None:
        self._slots = slots
        self._index = index
        self._process = Process.current()
        self._lease = lease_ms / 1000
        self._claims: dict[str, LiveClaim] = {}
        self._renewal = renewal
        #: Taken from the end: the lowest first, so that few are ever used.
        self._free_cells = list(reversed(range(CLAIMS)))
        self._cells = 0
        self._renewed = 0.0
        self._taken = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False
        before = slots.read(index)
        #: Claims a predecessor in this slot died with, before the keeper could see it.
        self.left_behind = before.claims if before and before.process.is_dead() else ()
        slots.publish(index, self._process, [])

    @contextmanager
    def keeping(self, claim: LiveClaim) -> Iterator[None]:
        """Have a claim renewed for as long as the block runs; a block inside one adds nothing."""
        with self._changed:
            is_kept = claim.token in self._claims
        if is_kept:
            yield
            return
        with self._changed:
            cell = self._free_cells.pop()
            self._claims[claim.token] = claim
            self._taken += 1
            self._cells = max(self._cells, cell + 1)
            self._slots.publish_head(
                self._index, self._process, taken=self._taken, cells=self._cells
            )
            self._publish(cell, claim)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="baton-slot", daemon=True)
                self._thread.start()
            if len(self._claims) == 1:
                self._changed.notify_all()
        claim.on_deadline(lambda: self._publish_changed(cell, claim))
        try:
            yield
        finally:
            with self._changed:
                self._claims.pop(claim.token, None)
                self._slots.publish_claim(self._index, cell, None)
                self._free_cells.append(cell)

    def is_orphaned(self) -> bool:
        """Tell whether the keeper has been silent for half a lease."""
        return time.monotonic() - self._slots.beat() > self._lease / 2

    def should_stop(self) -> bool:
        """Tell whether nothing new should be taken: asked to stop, or nobody keeps this child."""
        return self._slots.stop_requested() or self.is_orphaned()

    def stop(self) -> None:
        """End the watching thread. On repeat: nothing."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _publish_changed(self, cell: int, claim: LiveClaim) -> None:
        with self._changed:
            if claim.token in self._claims:
                self._publish(cell, claim)

    def _publish(self, cell: int, claim: LiveClaim) -> None:
        published = PublishedClaim(claim.workflow_id, claim.token, claim.deadline, claim.culprit)
        self._slots.publish_claim(self._index, cell, published)

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._claims)
                if self._stopped:
                    return
                claims = list(self._claims.values())
            lost = self._slots.lost(self._index)
            for claim in claims:
                if claim.token in lost:
                    _lose(claim)
            if self.is_orphaned() and time.monotonic() - self._renewed > self._lease / 3:
                self._renew(claims)
            with self._changed:
                self._changed.wait(timeout=_LOOK_SECONDS)

    def _renew(self, claims: list[LiveClaim]) -> None:
        self._renewed = time.monotonic()
        log.warning("the keeper is silent: renewing %d claims here", len(claims))
        try:
            for claim in renew_claims(self._renewal, claims):
                _lose(claim)
        except KernelError as exc:
            log.warning("renewing %d claims: %s", len(claims), exc)


def _lose(claim: LiveClaim) -> None:
    if not claim.leaving and not claim.lost.is_set():
        log.warning("claim lost: %s", claim.workflow_id, extra={"claim": claim.token[:8]})
        claim.lose()
