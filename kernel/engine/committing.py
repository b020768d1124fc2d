"""Write a holder's commit until there is an answer (design 1.4, "uncertain answers").

A lost answer does not say whether the write happened. The instance is re-read with majority and
judged by the commit's own effect, never by revision:

- token still ours, every moved step at its old `seq` → send the same commit again: its filter makes
  that safe, and a finished activity's result is not thrown away for a network blip;
- token still ours, seq as written → it was applied;
- token not ours → a releasing commit is judged by its steps (it gives the token up itself), any
  other one means that the claim is lost, if it still looks so after the commit was sent once more.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from typing import Final

from kernel.engine.claims import HeldClaim
from kernel.errors import StoreUnavailable
from kernel.protocol.commit import Commit
from kernel.protocol.judging import Verdict, judge
from kernel.store.port import Document, Inbox, Instances

log: Final = logging.getLogger("baton.engine")

#: Seconds between tries while MongoDB is away: quick at first, so that an election costs little.
_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)


def commit_held(
    store: Instances, held: HeldClaim, commit: Commit, after: Document | None = None
) -> bool:
    """Return whether the commit is stored; False means that the claim is lost and nothing was.

    `after` is the instance as the commit leaves it, where the caller knows that already. Waits as
    long as MongoDB does not answer and the claim is not known to be lost.

    Raises:
        ValueTooLarge: the instance would outgrow its document; nothing was written.
    """
    held.live.leaving = commit.releases
    for attempt in itertools.count():
        try:
            applied = store.commit_grouped(commit) if attempt == 0 else _settle(store, commit)
        except StoreUnavailable as exc:
            pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
            log.warning("commit %r of %s: %s", commit.label, commit.guard.workflow_id, exc)
            held.live.working()
            if held.live.lost.wait(pause):
                return _lost(held, commit)
            continue
        if not applied:
            return _lost(held, commit)
        held.carry(commit, after)
        return True
    raise AssertionError("unreachable")


def mark_held(inbox: Inbox, held: HeldClaim, signal_ids: Sequence[str]) -> bool:
    """Mark the signals that woke this claim's steps; False means that the claim is lost meanwhile.

    Waits for an answer: a completed step forgets what woke it, and a signal that still looks
    pending then would wake another one.
    """
    for attempt in itertools.count():
        try:
            inbox.mark(signal_ids)
        except StoreUnavailable as exc:
            log.warning("marking signals of %s: %s", held.live.workflow_id, exc)
            held.live.working()
            if held.live.lost.wait(_PAUSES[min(attempt, len(_PAUSES) - 1)]):
                return False
            continue
        return True
    raise AssertionError("unreachable")


def _settle(store: Instances, commit: Commit) -> bool:
    """Learn what became of a commit whose answer was lost; send it again if nothing did."""
    verdict = _verdict(store, commit)
    if verdict is not Verdict.APPLIED:
        # The majority may be behind our own writes, even behind the claim if its answer was lost as
        # well; a write that finds nothing waits for all that came before it.
        if store.commit(commit):
            return True
        verdict = _verdict(store, commit)
    if verdict is Verdict.SEND_AGAIN:
        raise StoreUnavailable("the majority does not know yet what became of it")
    return verdict is Verdict.APPLIED


def _verdict(store: Instances, commit: Commit) -> Verdict:
    stored = store.read(commit.guard.workflow_id, majority=True)
    return Verdict.LOST if stored is None else judge(stored.instance, commit)


def _lost(held: HeldClaim, commit: Commit) -> bool:
    log.warning(
        "claim lost: %s wrote nothing with %r", commit.guard.workflow_id, commit.label,
        extra={"workflow_id": commit.guard.workflow_id, "claim": held.live.token[:8]},
    )  # fmt: skip
    held.live.lose()
    held.ended = True
    return False


class StopRequest:
    """A process was asked to stop: no new claims, finish what is in flight, hand back."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the stop. On repeat: nothing."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether the process should stop."""
        return self._event.is_set()
