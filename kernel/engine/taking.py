"""Finds candidates and takes their claims, one or a group at a time (design 1.8, 2.2).

Redis proposes, the claim in MongoDB decides. A candidate that cannot be claimed is looked at once,
so that its hint ends up where it belongs; after several stale ones in a row the taker gives up.
Without Redis, due instances are claimed straight from MongoDB, in no order of priority.

Guarantees that what was popped and could not be asked about goes back into its lane. Leaves to
others: running the claims (`kernel.engine.running`), how many at once (`kernel.engine.drain`).
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from kernel import limits
from kernel.definition import Definition
from kernel.engine.claims import HeldClaim, LiveClaim
from kernel.engine.hinting import as_ms
from kernel.engine.machine import Machine
from kernel.errors import (
    HintsUnavailable,
    InvariantViolation,
    KernelError,
    StoreUnavailable,
    Unreadable,
)
from kernel.hints import Candidate, NoHints
from kernel.protocol import owning
from kernel.protocol.expressions import Changes
from kernel.protocol.first_wave import FirstWave, begun_with_claim, first_wave, is_first_claim
from kernel.store.port import Stored

log: Final = logging.getLogger("baton.engine")

_UNKNOWN_TYPE_RETRY: Final = timedelta(seconds=5)
_SILENT_HOLDER_RETRY: Final = timedelta(seconds=1)
#: Looks into MongoDB, at most, for claims that can be read here.
_LOOKS_PAST: Final = 50
#: Definitions of a queue whose first wave travels with the claim: each makes the command longer.
_BEGINS_MAX: Final = 8


class Taker:
    """Takes claims of this process's definitions.

    `is_served(fingerprint)` tells whether some worker that knows this step protocol was seen
    lately.
    """

    def __init__(
        self, machine: Machine, *, types_off: frozenset[str], is_served: Callable[[str], bool]
    ) -> None:
        self._machine = machine
        self._types_off = types_off
        self._is_served = is_served
        self._first_waves: dict[Definition, FirstWave | None] = {}

    def served(self) -> dict[str, Definition]:
        """Return the definitions that may run here, by fingerprint."""
        return {
            definition.plan.fingerprint: definition
            for definition in self._machine.registry.definitions()
            if definition.plan.type not in self._types_off
        }

    def take(self, queue: str, count: int) -> list[HeldClaim]:
        """Claim up to `count` candidates of a queue's lanes; none when nothing is due.

        Raises:
            StoreUnavailable: MongoDB did not answer; the candidates stand in their lanes again.
        """
        fingerprints = list(self.served())
        hints = self._machine.hints.hints
        if not fingerprints or count < 1:
            return []
        if isinstance(hints, NoHints):
            return self.take_from_store([queue], count)
        stale = 0
        try:
            while stale < limits.STALE_CANDIDATES_MAX:
                candidates = hints.pop_many(queue, count)
                if not candidates:
                    break
                if held := self._claim(queue, candidates, fingerprints):
                    return held
                stale += len(candidates)
        except HintsUnavailable:
            return self.take_from_store([queue], count)
        return []

    def take_from_store(self, queues: Sequence[str], count: int) -> list[HeldClaim]:
        """Claim up to `count` due instances that need not stand in a lane.

        Goes on past those that were claimed and cannot be read here, up to a bound.
        """
        held: list[HeldClaim] = []
        for _ in range(_LOOKS_PAST):
            wanted = count - len(held)
            try:
                taken = self._take_due(queues, wanted)
            except StoreUnavailable:
                if not held:
                    raise
                break  # those that are held run; they meet the outage by themselves
            held += self._hold(taken)
            if len(taken) < wanted or len(held) >= count:
                break
        return held

    def _take_due(self, queues: Sequence[str], count: int) -> list[Stored]:
        fingerprints = list(self.served())
        taken: list[Stored] = []
        while fingerprints and len(taken) < count:
            try:
                stored = self._machine.store.claim_any(
                    queues,
                    fingerprints=fingerprints,
                    token=secrets.token_hex(16),
                    owner=self._machine.owner,
                    lease_ms=self._machine.lease_ms,
                    begins=self._begins(queues),
                )
            except StoreUnavailable:
                if not taken:
                    raise
                break  # those that were taken run; they meet the outage by themselves
            if stored is None:
                break
            taken.append(stored)
        return taken

    def _claim(
        self, queue: str, candidates: Sequence[Candidate], fingerprints: list[str]
    ) -> list[HeldClaim]:
        # A hint may propose one twice; held twice, it would run twice under one token.
        candidates = list({each.workflow_id: each for each in candidates}.values())
        wanted = [candidate.workflow_id for candidate in candidates]
        try:
            granted = self._grant(wanted, fingerprints, self._begins([queue]))
        except StoreUnavailable:
            self._put_back(queue, candidates)
            raise
        first_come = (granted.get(each.workflow_id) for each in candidates)
        held = self._hold([stored for stored in first_come if stored is not None])
        stale = [each for each in candidates if each.workflow_id not in granted]
        try:
            for candidate in stale:
                self._try_look(queue, candidate.workflow_id)
        except StoreUnavailable:
            self._put_back(queue, stale)
            if not held:
                raise
        return held  # whatever became of the others: a claim that nobody runs blocks its workflow

    def _put_back(self, queue: str, candidates: Sequence[Candidate]) -> None:
        with suppress(HintsUnavailable):
            self._machine.hints.hints.push_all(queue, candidates)

    def _grant(
        self, wanted: list[str], fingerprints: list[str], begins: Mapping[str, Changes]
    ) -> dict[str, Stored | None]:
        owner, lease_ms = self._machine.owner, self._machine.lease_ms
        if len(wanted) > 1:
            return self._machine.store.claim_group(
                wanted, fingerprints=fingerprints, seal=secrets.token_hex(8), owner=owner,
                lease_ms=lease_ms, begins=begins,
            )  # fmt: skip
        [workflow_id] = wanted
        try:
            stored = self._machine.store.claim(
                workflow_id, fingerprints=fingerprints, token=secrets.token_hex(16), owner=owner,
                lease_ms=lease_ms, begins=begins,
            )  # fmt: skip
        except InvariantViolation as exc:  # as a group tells it
            log.error("%s cannot be claimed: %s", workflow_id, exc)
            return {workflow_id: None}
        return {workflow_id: stored} if stored is not None else {}

    def _begins(self, queues: Sequence[str]) -> dict[str, Changes]:
        """Return by fingerprint what may begin with a claim on these queues."""
        waves = (
            (fingerprint, self._first_wave(definition))
            for fingerprint, definition in self.served().items()
            if definition.plan.queue in queues
        )
        first = ((fingerprint, wave.changes) for fingerprint, wave in waves if wave is not None)
        return dict(itertools.islice(first, _BEGINS_MAX))

    def _first_wave(self, definition: Definition) -> FirstWave | None:
        if definition not in self._first_waves:
            self._first_waves[definition] = first_wave(definition)
        return self._first_waves[definition]

    def _hold(self, granted: Sequence[Stored]) -> list[HeldClaim]:
        held, served = [], self.served()
        for stored in granted:
            live = LiveClaim(stored.document["workflow_id"], stored.document["claim_token"])
            try:
                one = HeldClaim(stored, live)
            except Unreadable as exc:  # the others of its group are not to blame
                self._leave(stored, live, exc)
                continue
            first = self._first_wave(served[one.instance.definition_fingerprint])
            one.begun = begun_with_claim(one.instance, first)
            held.append(one)
        self._machine.hints.claimed([one.instance for one in held])
        return held

    def _leave(self, stored: Stored, live: LiveClaim, why: Unreadable) -> None:
        """Give back what cannot be read here, so that others may take it before our lease ends."""
        log.error("claimed, and left to others: %s", why)
        definition = self.served().get(stored.document.get("definition_fingerprint", ""))
        wave = self._first_wave(definition) if definition is not None else None
        is_begun = wave is not None and is_first_claim(stored.document.get("revision"))
        commit = owning.leave_unread(
            live.workflow_id,
            live.token,
            wave.steps if wave is not None and is_begun else (),
            why.fault,
            seconds=limits.INCOMPATIBLE_SERVED_SECONDS,
        )
        try:
            self._machine.store.commit(commit)
        except KernelError as exc:
            log.error("%s is left to its lease: %s", live.workflow_id, exc)

    def _try_look(self, queue: str, workflow_id: str) -> None:
        try:
            self._look(queue, workflow_id)
        except Unreadable as exc:
            log.error("a candidate is left alone: %s", exc)

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
        with suppress(HintsUnavailable):
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
