"""Renews claims together with the permits they hold (design 2.5).

Permits first, for the same time: a permit never ends before its claim, so that no other call starts
while its holder is alive; and when the claim is no longer renewed, neither is the permit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kernel.store import CapacityStore
from kernel.store.port import Instances


class LeaseRenewal:
    """What renewing threads, the keeper's and a child's own, do for all their claims at once."""

    def __init__(self, store: Instances, capacity: CapacityStore, *, lease_ms: int) -> None:
        self._store = store
        self._capacity = capacity
        self._lease_ms = lease_ms

    def renew(
        self, claims: Iterable[tuple[str, str]], *, known_lost: Collection[str] = ()
    ) -> set[str]:
        """Extend claims given as (workflow_id, token); return the tokens that are lost.

        Permits of claims that are `known_lost` run out.

        Raises:
            StoreUnavailable: not known; try again soon.
        """
        wanted = list(claims)
        if not wanted:
            return set()
        tokens = [token for _, token in wanted if token not in known_lost]
        self._capacity.renew(tokens, lease_ms=self._lease_ms)
        return self._store.renew(wanted, lease_ms=self._lease_ms)
