"""The keeper's thread in a worker's main process: renews, flags, kills, frees, says who is here.

Guarantees that one duty's failure does not end the others, and that only children of this worker
are killed. Leaves to others: whose a claim is (MongoDB), and what the child does with a lost one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from kernel.engine.handing_on import HandingOn
from kernel.engine.hinting import HintWriter
from kernel.engine.renewing import LeaseRenewal
from kernel.errors import KernelError
from kernel.keeper.freeing import free_claim
from kernel.keeper.processes import Process
from kernel.keeper.slots import ClaimSlots, PublishedChild, PublishedClaim
from kernel.protocol import owning
from kernel.store import InstanceStore, WorkerBeats
from kernel.store.workers import Served

log: Final = logging.getLogger("baton.keeper")

_TURN_SECONDS: Final = 0.25
_SILENT_RETRY_SECONDS: Final = 1.0
_WORKER_BEAT_SECONDS: Final = 5.0
#: A child that ignores the loss of its claim this long is ended.
_LOST_GRACE_SECONDS: Final = 10.0
#: How long the keeper waits for the end of a child it killed, to bury it in the same turn.
_DEATH_SECONDS: Final = 1.0
#: Longest time one duty may wait for MongoDB; shorter than what children take for silence.
_DUTY_SECONDS: Final = 3.0


@dataclass(slots=True)
class _Condemned:
    """A child that was killed, and the step that was the reason (token, step)."""

    token: str | None = None
    step: str | None = None

    def culprit_of(self, token: str) -> str | None:
        """Return the step a claim's freeing blames: none of them for a bystander."""
        if self.token is None:
            return None
        return self.step if token == self.token else owning.NOBODY


class Keeper:
    """Keeps the claims of one worker's children; start it in the main process, after its slots."""

    def __init__(
        self,
        slots: ClaimSlots,
        *,
        store: InstanceStore,
        renewal: LeaseRenewal,
        handing_on: HandingOn,
        beats: WorkerBeats,
        hints: HintWriter,
        owner: str,
        lease_ms: int,
        queues: Callable[[], Sequence[str]],
        served: Sequence[Served],
        bounded: Callable[[float], AbstractContextManager[None]],
    ) -> None:
        self._slots = slots
        self._bounded = bounded
        self._duty_seconds = min(_DUTY_SECONDS, lease_ms / 3000)
        self._store = store
        self._renewal = renewal
        self._handing_on = handing_on
        self._beats = beats
        self._hints = hints
        self._owner = owner
        self._lease_ms = lease_ms
        self._queues = queues
        self._served = tuple(served)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_renewal = 0.0
        self._next_beat = 0.0
        self._condemned: dict[Process, _Condemned] = {}
        self._buried: set[Process] = set()
        self._lost_since: dict[str, float] = {}
        self._taken: dict[Process, int] = {}
        self._claimed_at: float | None = None

    def start(self) -> None:
        """Begin keeping; the first beat is written before this returns. On repeat: nothing."""
        if self._thread is None:
            self._slots.write_beat(time.monotonic())
            self._thread = threading.Thread(target=self._run, name="baton-keeper", daemon=True)
            self._thread.start()

    def request_stop(self) -> None:
        """Ask the children to finish their step and hand back. On repeat: nothing."""
        self._slots.request_stop()

    def stop(self) -> None:
        """End the thread, after the pool has ended. On repeat: nothing."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * _DUTY_SECONDS)
        self._guarded(self._bury_dead)  # those that died while the pool was ending
        self._forget_worker()

    def _run(self) -> None:
        while not self._stopped.wait(_TURN_SECONDS):
            for duty in (self._renew_due, self._bury_dead, self._end_hung, self._say_here):
                self._slots.write_beat(time.monotonic())
                self._guarded(duty)

    def _guarded(self, duty: Callable[[list[PublishedChild]], None]) -> None:
        """One duty's failure must not end the others: this thread is what keeps claims alive."""
        try:
            with self._bounded(self._duty_seconds):
                duty(self._published())
        except KernelError as exc:
            log.warning("%s: %s", duty.__name__.strip("_"), exc)
        except Exception:
            log.exception("%s failed", duty.__name__.strip("_"))

    def _published(self) -> list[PublishedChild]:
        seated = self._slots.seated()
        return [child for index in seated if (child := self._slots.read(index))]

    def _bury_dead(self, children: list[PublishedChild]) -> None:
        for child in children:
            if child.process in self._buried or not child.process.is_dead():
                continue
            reason = self._condemned.get(child.process, _Condemned())
            for claim in self._left_by(child):
                free_claim(
                    self._store,
                    self._hints,
                    self._handing_on,
                    workflow_id=claim.workflow_id,
                    token=claim.token,
                    culprit=reason.culprit_of(claim.token),
                )
            self._condemned.pop(child.process, None)
            self._buried.add(child.process)

    def _left_by(self, dead: PublishedChild) -> Collection[PublishedClaim]:
        """Return what a dead child held: it may have taken claims since it was looked at.

        Where a successor has taken its area, what it left after that look is the successor's.
        """
        last = self._slots.read(dead.index)
        latest = last.claims if last is not None and last.process == dead.process else ()
        return {claim.token: claim for claim in (*dead.claims, *latest)}.values()

    def _renew_due(self, children: list[PublishedChild]) -> None:
        now = time.monotonic()
        if now < self._next_renewal:
            return
        self._next_renewal = now + min(_SILENT_RETRY_SECONDS, self._lease_ms / 3000)
        alive = [child for child in children if not child.process.is_dead()]
        claims = [(c.workflow_id, c.token) for child in alive for c in child.claims]
        lost = self._renewal.renew(claims, known_lost=self._lost_since)
        self._next_renewal = now + self._lease_ms / 3000
        self._lost_since = {token: self._lost_since.get(token, now) for token in lost}
        for child in alive:
            self._slots.flag_lost(child.index, [c.token for c in child.claims if c.token in lost])

    def _end_hung(self, children: list[PublishedChild]) -> None:
        now = time.monotonic()
        for child in children:
            if child.process in self._condemned or child.process in self._buried:
                continue
            for claim in child.claims:
                ignored = now - self._lost_since.get(claim.token, now) > _LOST_GRACE_SECONDS
                if claim.deadline < now or ignored:
                    why = "ignores that its claim is lost" if ignored else "is past its deadline"
                    self._end(child, claim, why)
                    break

    def _end(self, child: PublishedChild, claim: PublishedClaim, why: str) -> None:
        log.error(
            "child %d ends: step %s of %s %s", child.process.pid, claim.step, claim.workflow_id, why
        )
        self._condemned[child.process] = _Condemned(claim.token, claim.step)
        child.process.kill()
        until = time.monotonic() + _DEATH_SECONDS
        while not child.process.is_dead() and time.monotonic() < until:
            time.sleep(0.01)
        # At once, before a successor overwrites what this child published: only here is known
        # which step its death is blamed on.
        self._bury_dead([child])

    def _say_here(self, children: list[PublishedChild]) -> None:
        now = time.monotonic()
        if now < self._next_beat:
            return
        self._next_beat = now + _WORKER_BEAT_SECONDS
        before, self._taken = self._taken, {child.process: child.taken for child in children}
        if any(taken > before.get(process, 0) for process, taken in self._taken.items()):
            self._claimed_at = now
        self._beats.beat(
            self._owner,
            queues=self._queues(),
            served=self._served,
            children=self._slots.children,
            claims=sum(len(child.claims) for child in children),
            stopping=self._slots.stop_requested(),
            claimed_ago=None if self._claimed_at is None else now - self._claimed_at,
        )

    def _forget_worker(self) -> None:
        try:
            self._beats.forget(self._owner)
        except KernelError as exc:
            log.info("the worker's beat is left to its end: %s", exc)
