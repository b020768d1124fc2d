"""Keeps the leases of this process's claims alive (design 1.5).

The lease belongs to the claim, not to an activity: it is renewed while a timed-out activity is
still being waited for. All claims are renewed in one bulk write every lease/3, every second while
MongoDB does not answer. A token that is no longer current is flagged as lost at once; a claim past
its deadline is no longer renewed, so that a hung activity gives its workflow up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kernel.engine.claims import LiveClaim
from kernel.engine.renewing import LeaseRenewal
from kernel.errors import KernelError

log: Final = logging.getLogger("baton.heartbeat")

_RETRY_SECONDS: Final = 1.0


class Heartbeat:
    """One renewing thread, alive while this process holds claims."""

    def __init__(self, renewal: LeaseRenewal, *, lease_ms: int) -> None:
        self._renewal = renewal
        self._lease_ms = lease_ms
        self._claims: dict[str, LiveClaim] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    @contextmanager
    def keeping(self, claim: LiveClaim) -> Iterator[None]:
        """Renew a claim for as long as the block runs; a block inside another adds nothing."""
        with self._changed:
            is_kept = claim.token in self._claims
            self._claims[claim.token] = claim
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._beat, name="baton-heartbeat", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                if not is_kept:
                    self._claims.pop(claim.token, None)

    def should_stop(self) -> bool:
        """Never by itself: a process that keeps its own claims is stopped by request."""
        return False

    def stop(self) -> None:
        """End the thread. On repeat: nothing."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _beat(self) -> None:
        pause = self._lease_ms / 3000
        while self._pause(pause):
            pause = self._renew()

    def _pause(self, seconds: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, timeout=seconds)
            return not self._stopped

    def _renew(self) -> float:
        """Renew once; return the seconds until the next time."""
        with self._changed:
            claims = list(self._claims.values())
        try:
            lost = renew_claims(self._renewal, claims)
        except KernelError as exc:
            log.warning("renewing %d claims: %s", len(claims), exc)
            return min(_RETRY_SECONDS, self._lease_ms / 3000)
        for claim in lost:
            self._flag(claim)
        return self._lease_ms / 3000

    def _flag(self, claim: LiveClaim) -> None:
        with self._changed:
            if claim.token not in self._claims or claim.leaving:
                return  # it gave itself up meanwhile
        log.warning("claim lost: %s", claim.workflow_id, extra={"claim": claim.token[:8]})
        claim.lose()


def renew_claims(renewal: LeaseRenewal, claims: list[LiveClaim]) -> list[LiveClaim]:
    """Renew the claims that are not past their deadline; return those that are lost."""
    now = time.monotonic()
    wanted = [claim for claim in claims if claim.deadline > now]
    known_lost = {claim.token for claim in wanted if claim.lost.is_set()}
    lost = renewal.renew([(c.workflow_id, c.token) for c in wanted], known_lost=known_lost)
    return [claim for claim in wanted if claim.token in lost]
