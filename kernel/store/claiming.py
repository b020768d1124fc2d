"""Claims on instances: taken one at a time or in groups, renewed in bulk (design 1.4, 1.8).

A group is one statement for all its candidates, which gives each a token of its own, then one read
by those tokens: the server compiles the statement once, however many it claims. An answer that
gets lost is looked up by its token: nobody else writes it.

Guarantees that a claim is granted on the database clock only, and only where it is due and of a
definition served here; and that a document the server refuses to change keeps no other from being
claimed. Leaves to others: who asks for whom (`kernel.engine.drain`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pymongo import ReturnDocument, UpdateOne

from kernel.errors import InvariantViolation, StoreUnavailable
from kernel.protocol import owning
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes, TokenUnder
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored
from kernel.store.compiling import (
    Filter,
    Pipeline,
    compile_begins,
    compile_changes,
    compile_guard,
    compile_stages,
)
from kernel.store.connection import Connection, Document, translated
from kernel.store.port import Stored
from kernel.store.schema import ID_INDEX, INSTANCES, QUEUE_INDEX

log: Final = logging.getLogger("baton.store")

_CLAIMABLE: Final = [status.value for status in owning.CLAIMABLE]
_TERMINAL: Final = ["completed", "failed", "canceled"]
#: In this time after an absence every living holder has renewed, however short its lease: it waits
#: for MongoDB in turns of a few seconds.
_HOLDERS_ANSWER_SECONDS: Final = 6.0
#: Between two tries to read what a group was granted, seconds.
_READ_PAUSES: Final = (0.05, 0.2, 0.5)
_NO_BEGINS: Final[Mapping[str, Changes]] = {}
#: Due instances tried one by one, at most, past one the server refuses to change; how long such
#: ones are not tried again, seconds; and how many are remembered.
_TRIED_PAST: Final = 50
_REFUSED_SECONDS: Final = 60.0
_REFUSED_KEPT: Final = 500


@dataclass(frozen=True, slots=True)
class _FirstStage:
    """The stage that was compiled last, and from what."""

    begins: Mapping[str, Changes]
    offset_ms: int
    pipeline: Pipeline


class InstanceClaims:
    """The claiming half of the `workflow_instances` collection."""

    def __init__(self, connection: Connection, clock: StoreClock) -> None:
        self._connection = connection
        self._clock = clock
        self._instances = connection.collection(INSTANCES)
        self._first = _FirstStage({}, 0, [])
        self._refused: dict[str, float] = {}

    def claim(
        self,
        workflow_id: str,
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = _NO_BEGINS,
    ) -> Stored | None:
        """Take the claim of a candidate: only if due, claimable and of a definition served here.

        `begins` maps fingerprints to what the same write does to the steps of an instance that is
        untouched (`kernel.protocol.first_wave`).

        Raises:
            InvariantViolation: the server refuses to change this document.
        """
        found = {"workflow_id": workflow_id, **self._due(fingerprints, lease_ms)}
        changes = owning.claim_changes(token, owner, lease_ms=lease_ms)
        pipeline = self._claim_pipeline(changes, self._first_stage(begins))
        return self._claim(found, token, pipeline, lease_ms, hint=None)

    def claim_any(
        self,
        queues: Sequence[str],
        *,
        fingerprints: Sequence[str],
        token: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = _NO_BEGINS,
    ) -> Stored | None:
        """Take the claim of some due instance of these queues, without regard to priority.

        One whose document the server refuses to change is passed over and logged.
        """
        found = {"queue": {"$in": list(queues)}, **self._due(fingerprints, lease_ms)}
        if refused := self._refused_lately():
            found["workflow_id"] = {"$nin": refused}
        changes = owning.claim_changes(token, owner, lease_ms=lease_ms)
        pipeline = self._claim_pipeline(changes, self._first_stage(begins))
        try:
            return self._claim(found, token, pipeline, lease_ms, hint=QUEUE_INDEX)
        except InvariantViolation:
            return self._claim_past(found, token, pipeline, lease_ms)

    def _claim_past(
        self, found: Filter, token: str, pipeline: Pipeline, lease_ms: int
    ) -> Stored | None:
        """Claim the first of those found that the server lets be changed; it does not say which."""
        with translated():
            query = self._instances.find(found, {"workflow_id": 1}, hint=QUEUE_INDEX)
            ids = [row["workflow_id"] for row in query.limit(_TRIED_PAST)]
        for workflow_id in ids:
            one = {**found, "workflow_id": workflow_id}
            try:
                stored = self._claim(one, token, pipeline, lease_ms, hint=ID_INDEX)
            except InvariantViolation as exc:
                log.error("%s cannot be claimed: %s", workflow_id, exc)
                self._refused[workflow_id] = time.monotonic() + _REFUSED_SECONDS
                continue
            if stored is not None:
                return stored
        return None

    def _refused_lately(self) -> list[str]:
        """Name those that are not tried again for a while, the latest of them if they are many."""
        now = time.monotonic()
        kept = [(wid, until) for wid, until in list(self._refused.items()) if until > now]
        self._refused = dict(kept[-_REFUSED_KEPT:])
        return list(self._refused)

    def claim_group(
        self,
        workflow_ids: Sequence[str],
        *,
        fingerprints: Sequence[str],
        seal: str,
        owner: str,
        lease_ms: int,
        begins: Mapping[str, Changes] = _NO_BEGINS,
    ) -> dict[str, Stored | None]:
        """Take the claims of several candidates at once, under tokens made from one `seal`.

        Returns those that were granted, by workflow_id, and None for one whose document the server
        refuses to change; the others are as they were.
        """
        found = {"workflow_id": {"$in": list(workflow_ids)}, **self._due(fingerprints, lease_ms)}
        changes = {
            **owning.claim_changes(seal, owner, lease_ms=lease_ms),
            "claim_token": TokenUnder(seal),
        }
        pipeline = self._claim_pipeline(changes, self._first_stage(begins))
        one_by_one: Sequence[str] = ()
        try:
            with translated():
                if not self._instances.update_many(found, pipeline, hint=ID_INDEX).matched_count:
                    return {}
        except StoreUnavailable:
            pass  # some may be ours without our knowing: their tokens tell
        except InvariantViolation:
            one_by_one = workflow_ids  # the server went no further than the one it refused
        rows = self._held_under(seal, workflow_ids)
        granted: dict[str, Stored | None] = {
            row["workflow_id"]: _claimed(row, lease_ms) for row in rows
        }
        for workflow_id in (each for each in one_by_one if each not in granted):
            try:
                stored = self.claim(
                    workflow_id, fingerprints=fingerprints, begins=begins, owner=owner,
                    token=owning.token_under(seal, workflow_id), lease_ms=lease_ms,
                )  # fmt: skip
            except StoreUnavailable:
                break  # those that were granted run; the rest is looked at by the caller
            except InvariantViolation as exc:
                log.error("%s cannot be claimed: %s", workflow_id, exc)
                granted[workflow_id] = None
            else:
                granted |= {workflow_id: stored} if stored is not None else {}
        return granted

    def _held_under(self, seal: str, workflow_ids: Sequence[str]) -> list[Document]:
        """Read what a group was granted, more than once: unread it blocks until its leases end."""
        for pause in _READ_PAUSES:
            try:
                return self._under(seal, workflow_ids)
            except StoreUnavailable:
                time.sleep(pause)
        return self._under(seal, workflow_ids)

    def _under(self, seal: str, workflow_ids: Sequence[str]) -> list[Document]:
        tokens = [owning.token_under(seal, workflow_id) for workflow_id in workflow_ids]
        found = {
            "workflow_id": {"$in": list(workflow_ids)},
            "claim_token": {"$in": tokens},
            "status": {"$in": _CLAIMABLE},
        }
        with translated():
            return list(self._instances.find(found))

    def claim_for(
        self, commit: Commit, token: str, *, before: datetime, lease_ms: int
    ) -> Stored | None:
        """Apply a commit that takes the claim of one instance, if it is not yet `before`."""
        in_time = {"$expr": {"$lt": [self._clock.now(), before]}}
        found = {**compile_guard(commit.guard), **in_time}
        return self._claim(found, token, compile_stages(commit, self._clock), lease_ms, hint=None)

    def renew(self, claims: Iterable[tuple[str, str]], *, lease_ms: int) -> set[str]:
        """Extend claims in one bulk write; return the tokens that are no longer current."""
        wanted = list(claims)
        if not wanted:
            return set()
        later = [{"$set": {"claimable_time": self._clock.now(lease_ms)}}]
        updates = [
            UpdateOne(
                {"workflow_id": wid, "claim_token": token, "status": {"$nin": _TERMINAL}}, later
            )
            for wid, token in wanted
        ]
        with translated():
            result = self._instances.bulk_write(updates, ordered=False)
            if result.matched_count == len(wanted):
                return set()
            held = self._instances.find(
                {"workflow_id": {"$in": [wid for wid, _ in wanted]}, "status": {"$nin": _TERMINAL}},
                {"claim_token": 1},
            )
            current = {document.get("claim_token") for document in held}
        return {token for _, token in wanted if token not in current}

    def _due(self, fingerprints: Sequence[str], lease_ms: int) -> Filter:
        due: Filter = {
            "status": {"$in": _CLAIMABLE},
            "definition_fingerprint": {"$in": list(fingerprints)},
            **self._clock.is_past("claimable_time"),
        }
        if self._connection.came_back_within(max(lease_ms / 2000, _HOLDERS_ANSWER_SECONDS)):
            # Leases ran out because nobody could renew them: living holders answer first.
            due["claim_token"] = {"$exists": False}
        return due

    def _first_stage(self, begins: Mapping[str, Changes]) -> Pipeline:
        """Compile what begins with a claim, once for as long as it is the same."""
        first = self._first
        if first.begins != begins or first.offset_ms != self._clock.offset_ms:
            pipeline = compile_begins(begins, self._clock)
            self._first = first = _FirstStage(begins, self._clock.offset_ms, pipeline)
        return first.pipeline

    def _claim_pipeline(self, changes: Changes, first: Pipeline) -> Pipeline:
        # Before the claim, which raises the revision that tells an untouched instance.
        return [*first, {"$set": compile_changes(changes, self._clock)}]

    def _claim(
        self, found: Filter, token: str, pipeline: Pipeline, lease_ms: int, *, hint: str | None
    ) -> Stored | None:
        try:
            with translated():
                document = self._instances.find_one_and_update(
                    found,
                    pipeline,
                    return_document=ReturnDocument.AFTER,
                    hint=hint,
                )
        except StoreUnavailable:
            # The claim may be ours without our knowing: its token is unique, so look once.
            document = self._claimed_unknown(token)
        return _claimed(document, lease_ms) if document is not None else None

    def _claimed_unknown(self, token: str) -> Document | None:
        # Not by majority, which may be behind; the begin that comes next is guarded by this token.
        with translated():
            return self._instances.find_one({"claim_token": token, "status": {"$in": _CLAIMABLE}})


def _claimed(document: Document, lease_ms: int) -> Stored:
    now = document["claimable_time"] - timedelta(milliseconds=lease_ms)
    return Stored(document=from_stored(document), now=now)
