"""What the engine needs of a store, as a protocol; design 0 keeps the driver out of sight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from kernel.model import Signal, Wait, WorkflowInstance
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes
from kernel.store.legible import instance_of

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An instance as read, with the database's now of that reading."""

    document: Document
    now: datetime

    @property
    def instance(self) -> WorkflowInstance:
        """The document as a typed value. Raises: Unreadable."""
        return instance_of(self.document)


class Inbox(Protocol):
    """What a claim holder needs of the signal inbox. Every method may raise StoreUnavailable."""

    def pending_of(self, workflow_id: str, waits: Sequence[Wait]) -> list[Signal]:
        """Return the pending signals that end one of a workflow's waits, oldest first."""

    def mark(self, signal_ids: Sequence[str]) -> None:
        """Mark as matched what woke a step. On repeat: nothing."""


class Instances(Protocol):
    """Reading, guarded writing and claiming. Every method may raise StoreUnavailable."""

    def read(self, workflow_id: str, *, majority: bool = False) -> Stored | None:
        """Return the instance with the database's now, or None."""

    def commit(self, commit: Commit) -> bool:
        """Apply a commit; False means that its guard no longer held and nothing was written."""

    def commit_grouped(self, commit: Commit) -> bool:
        """Apply a holder's commit as `commit` does, grouped with others of this process."""

    def claim(
        self,
        workflow_id: str,
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = ...,
    ) -> Stored | None:
        """Take the claim of a candidate, if it is due and may be run here."""

    def claim_any(
        self,
        queues: Sequence[str],
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = ...,
    ) -> Stored | None:
        """Take the claim of some due instance, in no particular order."""

    def claim_group(
        self,
        workflow_ids: Sequence[str],
        *,
        fingerprints: Sequence[str],
        seal: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = ...,
    ) -> dict[str, Stored | None]:
        """Take the claims of candidates under tokens made from one seal; None: it is refused."""

    def claim_for(
        self, commit: Commit, token: str, *, before: datetime, lease_ms: int
    ) -> Stored | None:
        """Apply a commit that takes the claim of one instance, if it is not yet `before`."""

    def renew(self, claims: Iterable[tuple[str, str]], *, lease_ms: int) -> set[str]:
        """Extend claims given as (workflow_id, token); return the tokens that are lost."""
