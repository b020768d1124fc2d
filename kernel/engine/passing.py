"""Passes a permit to the next in line, and the slot that held it with it (design 2.5).

When a call is over and its claim ends with it, the same slot goes on with whoever waits longest for
the permit: one update takes the permit from the old claim and grants it to the new one's token, the
next write claims the instance under that token and begins its step. No lane, no bell, no second
asking lies in between.

| killed between | facts left | who completes it |
|---|---|---|
| grant / claim | a permit of a claim that was never taken | it runs out; reconcile |
| claim / run | a claim with its step begun and its permit | the keeper, the lease |

Guarantees that nobody is overtaken: the slot is kept only while the lanes would give it that very
instance, and only for one that waits for nothing but this permit. That no claim is taken without
its permit: it is taken within `PASSING_SECONDS` of the grant by the database's clock or not at all,
and until then nobody takes the permit for a dead one's. That a permit does not end before its
claim: it is granted for so much longer. Leaves to others: whoever cannot be passed to
(`kernel.engine.handing_on`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from kernel.definition import Definition
from kernel.engine.claims import HeldClaim, LiveClaim
from kernel.engine.hinting import as_ms
from kernel.engine.machine import Machine
from kernel.errors import HintsUnavailable, InvariantViolation, StoreUnavailable, Unreadable
from kernel.model import WorkflowInstance
from kernel.protocol import queueing
from kernel.protocol.resources import Held, PermitOwner
from kernel.store.codec import from_stored
from kernel.store.legible import instance_of
from kernel.store.standing import Standing

log: Final = logging.getLogger("baton.capacity")

#: Tells whether this slot may go on with an instance that is next in line.
May = Callable[[Standing], bool]


class Passing:
    """Takes claims for slots that have just given a permit back; `served()` as the taker's."""

    def __init__(self, machine: Machine, served: Callable[[], Mapping[str, Definition]]) -> None:
        self._machine = machine
        self._served = served

    def to_next(self, resource: str, owner: PermitOwner, may: May) -> HeldClaim | None:
        """Give a permit back; return the claim of the next in line if it may run in this slot.

        Else the place is handed on as always. On repeat: nothing is given twice.

        Raises:
            StoreUnavailable: it is not known whether the permit is back; try again.
        """
        handing_on, served = self._machine.permits.handing_on, self._served()
        following = handing_on.following(resource, whole=True)
        ours = {
            PermitOwner(waiter.workflow_id, waiter.steps[0], secrets.token_hex(16)): waiter
            for waiter in following
            if waiter.document is not None
            and len(waiter.steps) == 1
            and waiter.document.get("definition_fingerprint") in served
        }
        first = next(iter(ours.values()), None)
        if first is None or first is not following[0] or not may(first):
            handing_on.give_back(resource, owner, following=following)
            return None
        queue, lane = first.queue, first.priority
        alike = {to: w for to, w in ours.items() if (w.queue, w.priority) == (queue, lane)}
        given = handing_on.pass_on(resource, owner, tuple(alike))
        if given is None:
            return None
        held = self._claim(resource, given, alike[given.owner])
        if held is None:
            handing_on.take_back(resource, given.owner)
        return held

    def _claim(self, resource: str, given: Held, waiter: Standing) -> HeldClaim | None:
        assert waiter.document is not None
        try:
            instance = instance_of(from_stored(waiter.document))
        except Unreadable as exc:
            log.error("not passed on to: %s", exc)
            return None
        machine, step = self._machine, given.owner.step
        lease = timedelta(milliseconds=machine.lease_ms)
        next_step = queueing.next_step(
            instance, resource, given.since, max_recoveries=machine.max_recoveries
        )
        if step is None or next_step != step or not self._needs_only(resource, instance, step):
            return None
        token = given.owner.token
        commit = queueing.claim_and_begin(
            instance, step, token, machine.owner, lease_ms=machine.lease_ms
        )
        try:
            stored = machine.store.claim_for(
                commit, token, before=given.expires - lease, lease_ms=machine.lease_ms
            )
        except StoreUnavailable as exc:
            log.info("not known whether %s was claimed: %s", instance.workflow_id, exc)
            return None
        except InvariantViolation as exc:
            log.error("%s cannot be claimed: %s", instance.workflow_id, exc)
            return None
        if stored is None:
            return None
        held = HeldClaim(stored, LiveClaim(instance.workflow_id, token))
        held.begun, held.permits = (step,), {step: resource}
        held.places = {step: waiter.since}
        machine.hints.claimed([held.instance])
        return held

    def _needs_only(self, resource: str, instance: WorkflowInstance, step: str) -> bool:
        """Ask the definition as it is here: which resources a step names may have changed."""
        definition = self._served().get(instance.definition_fingerprint)
        if definition is None or definition.workflow_resources is not None:
            return False
        try:
            value = definition.plan.load_input(instance.input)
            return definition.steps[step].resources(value) == (resource,)
        except BaseException:  # noqa: BLE001 - activity code; the usual way tells what is wrong
            return False


def may_follow(machine: Machine, queues: tuple[str, ...], waiter: Standing) -> bool:
    """Tell whether a free slot of these queues would be given this instance by the lanes."""
    if machine.is_stopping() or waiter.queue not in queues:
        return False
    hints = machine.hints.hints
    try:
        if any(hints.has_due(queue) for queue in queues if queue != waiter.queue):
            return False
        at_ms = as_ms(waiter.started)
        return hints.is_next(waiter.queue, priority=waiter.priority, at_ms=at_ms)
    except HintsUnavailable:
        return False
