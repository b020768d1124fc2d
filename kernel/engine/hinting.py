"""Tells Redis and the host what may run now; always after the fact, never needed for it.

Every failure here costs latency only: reconciliation finds what a lost hint would have said.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from kernel import limits
from kernel.errors import HintsUnavailable
from kernel.hints import Hints, Lease
from kernel.model import InstanceStatus, WorkflowInstance

log: Final = logging.getLogger("baton.hints")
Ring = Callable[[str], None]


def as_ms(moment: datetime) -> int:
    """Return a moment as milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)


class HintWriter:
    """Writes lanes, timers and leases, and rings the host's bell, best effort."""

    def __init__(self, hints: Hints, ring: Ring | None) -> None:
        self.hints = hints
        self._ring_host = ring
        self._lock = threading.Lock()
        self._ended: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def place(self, instance: WorkflowInstance, now: datetime) -> None:
        """Say where an unclaimed instance belongs: its lane, the timers, or nowhere."""
        if instance.status.is_terminal:
            return
        with suppress(HintsUnavailable):
            if instance.status is InstanceStatus.WAITING:
                if instance.claimable_time < limits.FAR_FUTURE:
                    self.hints.put_timer(
                        instance.queue,
                        instance.workflow_id,
                        at_ms=as_ms(instance.claimable_time),
                    )
                return
            self.hints.push(
                instance.queue,
                instance.workflow_id,
                priority=instance.priority,
                at_ms=as_ms(instance.claimable_time),
            )
        if instance.claimable_time <= now:
            self.ring(instance.queue)

    def leased(self, instance: WorkflowInstance) -> None:
        """Note when a claim's lease ends, so that a dead holder is noticed in time."""
        if instance.claim_token:
            with suppress(HintsUnavailable):
                self.hints.put_lease(
                    instance.queue,
                    instance.workflow_id,
                    instance.claim_token,
                    expires_ms=as_ms(instance.claimable_time),
                )

    def claimed(self, instances: Sequence[WorkflowInstance]) -> None:
        """Note claims' leases, take them out of the lanes, and wake others if more is due."""
        by_queue: dict[str, list[Lease]] = defaultdict(list)
        for instance in instances:
            assert instance.claim_token
            ends_ms = as_ms(instance.claimable_time)
            by_queue[instance.queue].append((instance.workflow_id, instance.claim_token, ends_ms))
        for queue, leases in by_queue.items():
            with suppress(HintsUnavailable):
                if self.hints.note_claims(queue, leases, ended=self._take_ended(queue)):
                    self.ring_host(queue)

    def unleased(self, queue: str, workflow_id: str, token: str) -> None:
        """Remember that a claim has ended; its lease is forgotten with the next one's note.

        A process that dies before leaves an entry whose token says nothing any more.
        """
        with self._lock:
            self._ended[queue].append((workflow_id, token))

    def forget_ended(self) -> None:
        """Forget the leases of all claims that have ended; whoever stops taking claims calls it."""
        with self._lock:
            queues = list(self._ended)
        for queue in queues:
            with suppress(HintsUnavailable):
                if ended := self._take_ended(queue):
                    self.hints.drop_leases(queue, ended)

    def _take_ended(self, queue: str) -> list[tuple[str, str]]:
        with self._lock:
            return self._ended.pop(queue, [])

    def ring(self, queue: str) -> None:
        """Wake the host's workers of a queue, at most one message per bell."""
        try:
            rings = self.hints.ring(queue)
        except HintsUnavailable:
            rings = False  # the broker is usually the same Redis; polling takes over
        if rings:
            self.ring_host(queue)

    def ring_host(self, queue: str) -> None:
        """Call the host's own bell; whatever it raises is logged, never passed on."""
        if self._ring_host is None:
            return
        try:
            self._ring_host(queue)
        except Exception:
            log.warning("ringing %s failed", queue, exc_info=True)
