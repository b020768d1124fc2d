"""Finds candidates, takes claims, runs them: what a wakeup does (design 2.2).

Redis proposes, the claim in MongoDB decides. A candidate that cannot be claimed is looked at once,
so that its hint ends up where it belongs; after several stale ones in a row the slot is given back.
Without Redis, due instances are claimed straight from MongoDB, in no order of priority; an idle
process looks there as well, because a hint may be lost.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from kernel import limits
from kernel.definition import Definition
from kernel.engine.claims import HeldClaim, LiveClaim
from kernel.engine.hinting import as_ms
from kernel.engine.machine import Machine
from kernel.engine.running import run_claim
from kernel.errors import HintsUnavailable
from kernel.hints import NoHints
from kernel.protocol import owning
from kernel.store.port import Stored

log: Final = logging.getLogger("baton.engine")

_UNKNOWN_TYPE_RETRY: Final = timedelta(seconds=5)
_SILENT_HOLDER_RETRY: Final = timedelta(seconds=1)


class Drain:
    """Takes claims of this process's definitions, one at a time.

    `is_served(fingerprint)` tells whether some worker that knows this step protocol was seen
    lately.
    """

    def __init__(
        self, machine: Machine, *, types_off: frozenset[str], is_served: Callable[[str], bool]
    ) -> None:
        self._machine = machine
        self._types_off = types_off
        self._is_served = is_served

    def run_once(self, queues: Sequence[str]) -> bool:
        """Claim and run at most one instance; tell whether one ran."""
        for queue in queues:
            if self._machine.is_stopping():
                return False
            held = self._take(queue)
            if held is not None:
                self._run(held)
                return True
        return False

    def drain(
        self,
        queues: Sequence[str],
        *,
        max_claims: int | None = None,
        max_seconds: float | None = None,
    ) -> int:
        """Run what is due until nothing is, or the budget is used up; return how many ran."""
        if not self._machine.is_stopping():
            for queue in queues:
                with suppress(HintsUnavailable):
                    self._machine.hints.hints.clear_bell(queue)
        ran = 0
        until = time.monotonic() + max_seconds if max_seconds is not None else float("inf")
        while (max_claims is None or ran < max_claims) and time.monotonic() < until:
            turn = ran % len(queues) if queues else 0
            if not self.run_once([*queues[turn:], *queues[:turn]]):
                break
            ran += 1
        # Left by the budget, by a stop request, or behind too many stale candidates.
        for queue in queues:
            self.ring_if_due(queue)
        return ran

    def poll(self, queues: Sequence[str]) -> int:
        """Drain, then run what is due in MongoDB without standing in a lane; return how many."""
        ran = self.drain(queues, max_claims=None, max_seconds=None)
        while not self._machine.is_stopping():
            held = self._take_from_store(queues, list(self._served()))
            if held is None:
                break
            self._run(held)
            ran += 1 + self.drain(queues, max_claims=None, max_seconds=None)
        return ran

    def _run(self, held: HeldClaim) -> None:
        definition = self._served()[held.instance.definition_fingerprint]
        run_claim(self._machine, held, definition)

    def _served(self) -> dict[str, Definition]:
        return {
            definition.plan.fingerprint: definition
            for definition in self._machine.registry.definitions()
            if definition.plan.type not in self._types_off
        }

    def _take(self, queue: str) -> HeldClaim | None:
        fingerprints = list(self._served())
        if not fingerprints:
            return None
        try:
            for workflow_id in self._candidates(queue):
                token = secrets.token_hex(16)
                stored = self._machine.store.claim(
                    workflow_id,
                    fingerprints=fingerprints,
                    token=token,
                    owner=self._machine.owner,
                    lease_ms=self._machine.lease_ms,
                )
                if stored is not None:
                    return self._hold(stored, token)
                self._look(queue, workflow_id)
        except HintsUnavailable:
            return self._take_from_store([queue], fingerprints)
        return None

    def _candidates(self, queue: str) -> Iterator[str]:
        hints = self._machine.hints.hints
        if isinstance(hints, NoHints):
            raise HintsUnavailable("there is no Redis")
        for _ in range(limits.STALE_CANDIDATES_MAX):
            workflow_id = hints.pop(queue)
            if workflow_id is None:
                return
            yield workflow_id

    def _take_from_store(self, queues: Sequence[str], fingerprints: list[str]) -> HeldClaim | None:
        token = secrets.token_hex(16)
        stored = self._machine.store.claim_any(
            queues,
            fingerprints=fingerprints,
            token=token,
            owner=self._machine.owner,
            lease_ms=self._machine.lease_ms,
        )
        return self._hold(stored, token) if stored is not None else None

    def _hold(self, stored: Stored, token: str) -> HeldClaim:
        held = HeldClaim(stored, LiveClaim(stored.document["workflow_id"], token))
        self._machine.hints.claimed(held.instance)
        return held

    def _look(self, queue: str, workflow_id: str) -> None:
        """Put the hint of a candidate that could not be claimed where it belongs."""
        stored = self._machine.store.read(workflow_id)
        if stored is None or stored.instance.status not in owning.CLAIMABLE:
            if stored is not None:
                self._machine.hints.place(stored.instance, stored.now)
            return
        instance = stored.instance
        if instance.claimable_time > stored.now:
            if instance.claim_token:
                self._machine.hints.leased(instance)
            else:
                self._machine.hints.place(instance, stored.now)
            return
        definition = self._machine.registry.definition(instance.type)
        if definition is None or instance.type in self._types_off:
            self._push_later(queue, stored, _UNKNOWN_TYPE_RETRY)
        elif definition.plan.fingerprint != instance.definition_fingerprint:
            self._defer_incompatible(stored, definition)
        elif instance.claim_token:
            # Its lease is over, but MongoDB was away: its holder may still answer.
            self._push_later(queue, stored, _SILENT_HOLDER_RETRY)
        else:
            # Somebody else was faster, or it became due this very moment.
            self._machine.hints.place(instance, stored.now)

    def _push_later(self, queue: str, stored: Stored, pause: timedelta) -> None:
        """It goes back for others, or for another time, so that it is not polled hot."""
        at = stored.now + pause
        self._machine.hints.hints.push(
            queue,
            stored.instance.workflow_id,
            priority=stored.instance.priority,
            at_ms=as_ms(at),
        )

    def _defer_incompatible(self, stored: Stored, definition: Definition) -> None:
        """An unknown step protocol is never guessed at (invariant 8)."""
        is_served = self._is_served(stored.instance.definition_fingerprint)
        commit = owning.defer_incompatible(
            stored.instance,
            definition.plan.fingerprint,
            seconds=limits.INCOMPATIBLE_SERVED_SECONDS
            if is_served
            else limits.INCOMPATIBLE_DEFER_SECONDS,
        )
        if self._machine.store.commit(commit):
            log.error(
                "%s has another step protocol than this worker's %s; it waits for a worker that"
                " knows it",
                stored.instance.workflow_id,
                definition.plan.type,
            )

    def ring_if_due(self, queue: str) -> None:
        """Ring the queue's bell if another candidate is due. On repeat: it rings once."""
        with suppress(HintsUnavailable):
            if self._machine.hints.hints.has_due(queue):
                self._machine.hints.ring(queue)
