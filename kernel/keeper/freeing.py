"""Frees the claim of a dead child by the token it published (design 1.4)."""

from __future__ import annotations

import logging
from typing import Final

from kernel.engine.handing_on import HandingOn
from kernel.engine.hinting import HintWriter
from kernel.errors import InvariantViolation, Unreadable
from kernel.protocol import owning
from kernel.store import InstanceStore

log: Final = logging.getLogger("baton.keeper")


def free_claim(
    store: InstanceStore,
    hints: HintWriter,
    handing_on: HandingOn,
    *,
    workflow_id: str,
    token: str,
    culprit: str | None,
) -> bool:
    """Give a dead holder's claim and permits back at once; tell whether it still held the claim.

    `culprit` names the step its death is blamed on; without one, every running step is suspected,
    with `NOBODY` none is.
    On repeat: it has moved on, nothing happens. What cannot be read here, or changed, is left to
    its lease: the dead one's other claims are not to blame.

    Raises:
        StoreUnavailable: not known; try again.
    """
    handing_on.release_claims([token])
    try:
        return _free(store, hints, workflow_id, token, culprit)
    except (Unreadable, InvariantViolation) as exc:
        log.error("claim of a dead child left to its lease: %s", exc)
        return False


def _free(
    store: InstanceStore, hints: HintWriter, workflow_id: str, token: str, culprit: str | None
) -> bool:
    stored = store.read(workflow_id)
    if stored is None or stored.instance.claim_token != token:
        return False
    if stored.instance.status not in owning.CLAIMABLE:
        return False
    if not store.commit(owning.free_dead(stored.instance, culprit)):
        return False
    log.warning("claim of a dead child freed: %s", workflow_id, extra={"claim": token[:8]})
    hints.unleased(stored.instance.queue, workflow_id, token)
    after = store.read(workflow_id)
    if after is not None and after.instance.claim_token is None:
        hints.place(after.instance, after.now)
    return True
