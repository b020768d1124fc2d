"""A claim held by this process: the instance as it is now, and whether it is still ours.

The holder is the only writer of its instance, so the document is carried forward by the commits it
made itself. Its clock is the database's: read with the claim, continued by the monotonic clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kernel import limits
from kernel.context import Cancellation
from kernel.model import WorkflowInstance
from kernel.protocol.apply import apply_commit, typed_after
from kernel.protocol.commit import Commit
from kernel.store.port import Document, Stored


class LiveClaim:
    """What a keeper knows of a claim: identity, deadline, and a flag for its loss.

    There is always a `deadline` (monotonic seconds): that of the call which has to come home first,
    or a minute of engine work. Past it nothing renews the claim any more, so that what hangs cannot
    hold its workflow for ever; `culprit` names the step that hangs, if it is one.
    """

    def __init__(self, workflow_id: str, token: str) -> None:
        self.workflow_id = workflow_id
        self.token = token
        self.lost = threading.Event()
        #: Set before a commit that gives the claim up, so that its absence is no loss.
        self.leaving = False
        self._lock = threading.Lock()
        self._calls: set[Cancellation] = set()
        self._away: dict[str, float] = {}
        self._engine_deadline = time.monotonic() + limits.ENGINE_WORK_SECONDS
        self._listeners: list[Callable[[], None]] = []

    @property
    def deadline(self) -> float:
        """The monotonic moment past which this claim must not be kept."""
        with self._lock:
            return min(self._away.values(), default=self._engine_deadline)

    @property
    def culprit(self) -> str | None:
        """The step that has to come home first, or None during engine work."""
        with self._lock:
            return min(self._away, key=self._away.__getitem__, default=None)

    def entered(self, name: str, *, seconds: float) -> None:
        """Note that a call may take `seconds` in all, its hang grace included."""
        with self._lock:
            self._away[name] = time.monotonic() + seconds
        self._changed()

    def left(self, name: str) -> None:
        """Note that a call has come back; one that hangs never does."""
        with self._lock:
            self._away.pop(name, None)
        self.working()

    def working(self) -> None:
        """Note that the engine is at work, e.g. still asking MongoDB: its minute begins anew."""
        with self._lock:
            self._engine_deadline = time.monotonic() + limits.ENGINE_WORK_SECONDS
        self._changed()

    def on_deadline(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the deadline has changed."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()

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
    """One claim from taking it to its end; commits are serialised by `lock`.

    `begun` are the steps that the write of the claim itself has begun, `permits` what was granted
    to it before, by step, `places` where those steps stood in line for that. `following` is the
    claim that its slot goes on with, taken meanwhile.
    """

    def __init__(self, stored: Stored, live: LiveClaim) -> None:
        self.live = live
        self.begun: tuple[str, ...] = ()
        self.permits: Mapping[str, str] = {}
        self.places: Mapping[str, datetime] = {}
        self.following: HeldClaim | None = None
        self.lock = threading.RLock()
        self.ended = False
        self.claimed_at = stored.now
        self.prepared: list[Any] = []
        self._clock = DatabaseTime(stored.now)
        self._document = stored.document
        self._instance = stored.instance

    @property
    def document(self) -> Document:
        """The instance as this holder left it."""
        return self._document

    @property
    def now(self) -> datetime:
        """The database's now, as far as this process can tell."""
        return self._clock.now()

    @property
    def instance(self) -> WorkflowInstance:
        """The instance as a typed value."""
        return self._instance

    def carry(self, commit: Commit, after: Document | None = None) -> None:
        """Go on with the document as the commit left it: `after`, if that is known already."""
        if after is None:
            after = apply_commit(self._document, commit, self.now)
        # Made here and not when first asked for: threads of a wave ask at any time.
        self._instance = typed_after(self._instance, self._document, after)
        self._document = after
        self.ended = self.ended or commit.releases


class DatabaseTime:
    """A reading of the database's clock, continued by this machine's monotonic clock."""

    def __init__(self, reading: datetime) -> None:
        self._reading = reading
        self._at = time.monotonic()

    def now(self) -> datetime:
        """Return the database's now, wrong by a round trip at most."""
        return self._reading + timedelta(seconds=time.monotonic() - self._at)
