"""A claim held by this process: the instance as it is now, and whether it is still ours.

The holder is the only writer of its instance, so the document is carried forward by the commits it
made itself. Its clock is the database's: read with the claim, continued by the monotonic clock.
"""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from kernel.context import Cancellation
from kernel.model import WorkflowInstance
from kernel.protocol.apply import apply_commit
from kernel.protocol.commit import Commit
from kernel.store.port import Document, Stored


class LiveClaim:
    """What the heartbeat knows of a claim: identity, deadline, and a flag for its loss.

    `deadline` (monotonic seconds) bounds how long anything may keep this claim: past it the
    heartbeat stops renewing, so that a hung activity cannot hold its workflow for ever.
    """

    def __init__(self, workflow_id: str, token: str) -> None:
        self.workflow_id = workflow_id
        self.token = token
        self.lost = threading.Event()
        #: Set before a commit that gives the claim up, so that its absence is no loss.
        self.leaving = False
        self.deadline = float("inf")
        self._lock = threading.Lock()
        self._calls: set[Cancellation] = set()

    def add_call(self, call: Cancellation) -> None:
        """Let a call of activity code be cancelled when the claim is lost."""
        with self._lock:
            self._calls.add(call)
        if self.lost.is_set():
            call.set("claim lost")

    def remove_call(self, call: Cancellation) -> None:
        """Forget a call that has ended. On repeat: nothing."""
        with self._lock:
            self._calls.discard(call)

    def cancel_calls(self, reason: str) -> None:
        """Ask every call in flight to end."""
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.set(reason)

    def lose(self) -> None:
        """Note that somebody else holds the instance, and end what still runs for it."""
        self.lost.set()
        self.cancel_calls("claim lost")


class HeldClaim:
    """One claim from taking it to its end; commits are serialised by `lock`."""

    def __init__(self, stored: Stored, live: LiveClaim) -> None:
        self.live = live
        self.lock = threading.RLock()
        self.ended = False
        self.claimed_at = stored.now
        self.prepared: list[Any] = []
        self._clock = DatabaseTime(stored.now)
        self._document = stored.document

    @property
    def document(self) -> Document:
        """The instance as this holder left it."""
        return self._document

    @property
    def now(self) -> datetime:
        """The database's now, as far as this process can tell."""
        return self._clock.now()

    @cached_property
    def instance(self) -> WorkflowInstance:
        """The instance as a typed value."""
        return WorkflowInstance.model_validate(self._document)

    def carry(self, commit: Commit) -> None:
        """Go on with the document as the commit left it in the database."""
        self._document = apply_commit(self._document, commit, self.now)
        self.__dict__.pop("instance", None)  # made anew from the new document
        self.ended = self.ended or commit.releases


class DatabaseTime:
    """A reading of the database's clock, continued by this machine's monotonic clock."""

    def __init__(self, reading: datetime) -> None:
        self._reading = reading
        self._at = time.monotonic()

    def now(self) -> datetime:
        """Return the database's now, wrong by a round trip at most."""
        return self._reading + timedelta(seconds=time.monotonic() - self._at)
