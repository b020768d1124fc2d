"""The second hand: due timers and ended leases from Redis, and a bell for what waits too long.

Redis only says whom to look at. Every "not yet" answer puts its hint back with the right time, and
removing is compare-and-remove, so that a slow hand hides no candidate (design 2.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from kernel import limits
from kernel.engine.handing_on import HandingOn
from kernel.engine.hinting import HintWriter, as_ms
from kernel.errors import HintsUnavailable, Unavailable, Unreadable
from kernel.hints import NoHints
from kernel.model import InstanceStatus
from kernel.protocol import owning
from kernel.reconcile.due_waits import activate_all, activate_due_waits
from kernel.reconcile.duties import Reconciled
from kernel.store import GroupedInstances, InstanceScan, InstanceStore

log: Final = logging.getLogger("baton.tick")

#: Members of one index that one tick looks at together, and pages of timers it wakes in a row.
_BOUND: Final = limits.PAGE_WRITES
_PAGES: Final = 4
#: A due candidate older than this has been overlooked: ring on the tick's own bell.
_OVERLOOKED_MS: Final = 1_000


class Ticker:
    """Serves the timers and leases of some queues."""

    def __init__(
        self,
        *,
        store: InstanceStore,
        scan: InstanceScan,
        instances: GroupedInstances,
        hints: HintWriter,
        handing_on: HandingOn,
        rebuild: Callable[[], Reconciled],
    ) -> None:
        self._store = store
        self._scan = scan
        self._instances = instances
        self._hints = hints
        self._handing_on = handing_on
        self._rebuild = rebuild

    def tick(self, queues: Iterable[str]) -> int:
        """Look at what is due now; return how many instances were woken or put into their lane.

        Free permits and start slots are handed on first: their waiters may be due at once. On
        repeat, or twice at once: harmless.
        """
        return self._apart("permits", self._hand_on) + self._look(queues)

    def build_hints(self) -> bool:
        """Build the hints of a Redis that is known to have none; return whether they are whole.

        On repeat: nothing is left to build. Without Redis, or where another process is at it, the
        next tick looks again.
        """
        try:
            return self._hints.hints.marker_present() or self._build()
        except HintsUnavailable as exc:
            log.info("no hints built: %s", exc)
            return False

    def _build(self) -> bool:
        # Otherwise another process is at it, or it failed: the next tick looks again.
        is_whole = self._rebuild().lanes_whole
        if is_whole:
            self._hints.hints.set_marker()
        return is_whole

    def _hand_on(self) -> int:
        return self._handing_on.hand_on_all(limit=_BOUND)

    def _apart(self, what: str, duty: Callable[[], int]) -> int:
        """Do one thing, and the next one whatever stands in a document of this one."""
        try:
            return duty()
        except Unavailable:
            raise
        except Exception:
            log.exception("tick of %s", what)
            return 0

    def _look(self, queues: Iterable[str]) -> int:
        if isinstance(self._hints.hints, NoHints):
            return activate_due_waits(self._scan, self._instances, self._hints, limit=_BOUND).found
        try:
            if not self._hints.hints.marker_present():
                log.warning("Redis has no hints (new, or flushed); building them from MongoDB")
                self._build()
            duties = (self._timers, self._leases, self._bell)
            return sum(self._apart(q, partial(duty, q)) for q in queues for duty in duties)
        except HintsUnavailable as exc:
            log.info("tick without Redis: %s", exc)
            return activate_due_waits(self._scan, self._instances, self._hints, limit=_BOUND).found

    def _timers(self, queue: str) -> int:
        woken = 0
        for _ in range(_PAGES):
            due = self._hints.hints.due_timers(queue, limit=_BOUND)
            if not due:
                break
            found = self._scan.outlines([workflow_id for workflow_id, _ in due])
            count, awake = activate_all(self._scan, self._instances, self._hints, found.values())
            woken += count
            self._hints.hints.drop_timers(queue, due)
            for again in self._scan.outlines(found.keys() - awake).values():
                if again.instance.status is InstanceStatus.WAITING:
                    self._hints.place(again.instance, again.now)
            if len(due) < _BOUND or not awake:
                break
        return woken

    def _leases(self, queue: str) -> int:
        freed = 0
        for workflow_id, token, score in self._hints.hints.due_leases(queue, limit=_BOUND):
            stored = self._store.read(workflow_id)
            try:
                instance = stored.instance if stored is not None else None
            except Unreadable as exc:
                log.error("its lease is left to reconciliation: %s", exc)
                instance = None
            if stored is not None and instance is not None and instance.claim_token == token:
                if instance.status in owning.CLAIMABLE and instance.claimable_time > stored.now:
                    self._hints.leased(instance)  # renewed since: look again when that is over
                    continue
                if instance.status in owning.CLAIMABLE:
                    self._hints.hints.push(
                        queue,
                        workflow_id,
                        priority=instance.priority,
                        at_ms=as_ms(instance.claimable_time),
                    )
                    freed += 1
            self._hints.hints.drop_lease(queue, workflow_id, token, score_ms=score)
        if freed:
            # Past the queue's bell: it may be set for a worker that died with its claims.
            self._hints.ring_host(queue)
        return freed

    def _bell(self, queue: str) -> int:
        oldest = self._hints.hints.oldest_due_ms(queue)
        is_overlooked = oldest is not None and as_ms(self._store.now()) - oldest > _OVERLOOKED_MS
        if is_overlooked and self._hints.hints.ring_from_tick(queue):
            self._hints.ring_host(queue)
        return 0
