"""Delivers signals: record the fact, then try to wake whoever waits for it (design 4).

| killed between | facts left | who completes it |
|---|---|---|
| insert / activation | pending signal + matching wait | the suspender's own look, or reconcile |
| activation / mark | the step's `woken_by` names it | whoever claims next; no second wake |
| suspend / look | wait + older pending signal | reconcile |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kernel import limits
from kernel.engine.hinting import HintWriter
from kernel.errors import InvalidValue
from kernel.json_values import check_json
from kernel.model import Signal, Wait, WorkflowInstance
from kernel.protocol import signaling
from kernel.protocol.apply import apply_commit
from kernel.store import InstanceStore, SignalInbox
from kernel.store.signals import MATCHED, PENDING, UNMATCHED

_WORKFLOW_ID: Final = re.compile(r"wf_[0-9a-f]{32}")
_MAX_RACES: Final = 20


class SignalDelivery:
    """Brings signals to waiting instances; safe to repeat at every point."""

    def __init__(self, inbox: SignalInbox, store: InstanceStore, hints: HintWriter) -> None:
        self._inbox = inbox
        self._store = store
        self._hints = hints

    def deliver(self, signal: Signal) -> bool:
        """Record and deliver; True when newly recorded. On repeat: tried again while pending.

        A signal of an instance that has ended is closed as unmatched and answers False.

        Raises:
            InvalidValue: a malformed identity, or an id that was used for another one.
            StoreUnavailable: repeat with the same signal_id.
        """
        check_signal(signal)
        is_new = self._inbox.insert(signal)
        if not is_new:
            known = self._inbox.get(signal.signal_id)
            if known is not None and _identity(known) != _identity(signal):
                raise InvalidValue(
                    "was used for another workflow or wait; every signal needs an id of its own",
                    what=f"signal_id {signal.signal_id!r}",
                )
            if known is not None and known.status != PENDING:
                return False
        return self.match(signal) is not UNMATCHED and is_new

    def match(self, signal: Signal) -> str | None:
        """Try to wake whoever waits for a recorded signal; return how it was closed, if it was."""
        for _ in range(_MAX_RACES):
            stored = self._store.read(signal.workflow_id)
            if stored is None:
                return None  # not registered yet: it stays pending
            instance = stored.instance
            if signaling.is_spent(instance, signal):
                return self._close(signal, MATCHED)
            if instance.status.is_terminal:
                return self._close(signal, UNMATCHED)
            commit = signaling.activate(instance, signal)
            if commit is None:
                return None  # not waiting for it yet, or held: its holder looks into the inbox
            # After the instance was read, and the commit is guarded by that revision: a slow hand
            # whose signal has woken a step that is completed by now must not wake the next one.
            known = self._inbox.get(signal.signal_id)
            if known is None or known.status != PENDING:
                return known.status if known is not None else None
            if self._store.commit(commit):
                woken = apply_commit(stored.document, commit, stored.now)
                self._hints.place(WorkflowInstance.model_validate(woken), stored.now)
                return self._close(signal, MATCHED)
        return None

    def look(self, workflow_id: str, waits: Sequence[Wait]) -> None:
        """Look into the inbox once for an instance that has just begun these waits."""
        for signal in self._inbox.pending_of(workflow_id, waits):
            self.match(signal)

    def _close(self, signal: Signal, status: str) -> str:
        self._inbox.close([signal.signal_id], status)
        return status


def check_signal(signal: Signal) -> None:
    """Raise InvalidValue unless every part of a signal's identity is usable."""
    if not _WORKFLOW_ID.fullmatch(signal.workflow_id):
        raise InvalidValue(
            "is no workflow id; use StartResult.workflow_id or workflow_id_of(biz_key)",
            what=f"workflow_id {signal.workflow_id[:60]!r}",
        )
    for name in ("signal_id", "signal_type", "wait_key"):
        text = getattr(signal, name)
        if not 0 < len(text) <= limits.SIGNAL_NAME_CHARACTERS or "\0" in text:
            raise InvalidValue(
                f"give 1 to {limits.SIGNAL_NAME_CHARACTERS} characters without NUL", what=name
            )
        check_json(text, limit_bytes=limits.CHECKPOINT_BYTES, what=name)
    if not 0 <= signal.generation < 2**63:
        raise InvalidValue("give the number of the wait, from 0", what="generation")


def _identity(signal: Signal) -> tuple[str, str, str, int]:
    return (signal.workflow_id, signal.signal_type, signal.wait_key, signal.generation)
