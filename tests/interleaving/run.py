"""One schedule's instances and resources, and what is judged of them after each command.

Guarantees that no change escapes: what a command may have changed is read or told by the server's
answer, and at the end of a schedule the facts must be those that were seen last. Leaves the rules
to `changes` and `permits`, the order to the schedule.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import bson
from bson import CodecOptions
from pymongo.collection import Collection

from kernel import Plan, WorkflowInstance, workflow_id_of
from kernel.definition import Definition
from kernel.store.codec import from_stored
from kernel.store.schema import CAPACITY, INSTANCES, SIGNALS
from tests.interleaving import passing
from tests.interleaving.changes import Watch
from tests.interleaving.permits import Deed, Ledger
from tests.interleaving.scripts import QUEUE, Script
from tests.interleaving.wire import Command

Row = dict[str, Any]
#: Facts by collection.
Facts = dict[str, Collection[Row]]
_OPTIONS: CodecOptions[Any] = CodecOptions(tz_aware=True)


@dataclass
class Run:
    """What one schedule is about, and what was seen of it."""

    facts: Facts
    name: str
    of: Definition
    scripts: dict[str, Script]
    ledger: Ledger | None = None
    watches: dict[str, Watch] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    signals: set[str] = field(default_factory=set)
    #: What of the groups' work was met, to tell afterwards that it was.
    counts: Counter[str] = field(default_factory=Counter)
    #: Facts as `unseen` read them, and those put aside while other schedules run, by collection.
    facts_now: dict[str, list[Row]] = field(default_factory=dict)
    aside: dict[str, list[Row]] = field(default_factory=dict)
    queue: str = QUEUE

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.of.plan

    @property
    def keys(self) -> list[str]:
        """The biz_keys."""
        return list(self.scripts)

    @cached_property
    def ids(self) -> dict[str, str]:
        """The biz_keys by workflow_id."""
        return {workflow_id_of(key): key for key in self.scripts}

    @property
    def resources(self) -> list[str]:
        """The names of its resources."""
        return self.ledger.names if self.ledger is not None else []

    def workflow_id(self, key: str) -> str:
        """Return an instance's identity."""
        return workflow_id_of(key)

    def read(self, workflow_ids: Iterable[str]) -> dict[str, WorkflowInstance | None]:
        """Read instances beside all processes, by biz_key; None: there is none."""
        wanted = list(workflow_ids)
        rows = list(self.facts[INSTANCES].find({"workflow_id": {"$in": wanted}}))
        found: dict[str, WorkflowInstance | None] = {self.ids[one]: None for one in wanted}
        return found | {row["biz_key"]: as_instance(row) for row in rows}

    def look(self, writer: str, command: Command, answer: bytes | None) -> None:
        """Judge what a command changed."""
        if not command.writes:
            return
        told = bson.decode(answer, _OPTIONS) if answer is not None else None
        if command.collection == INSTANCES:
            self._count(command, told)
            for key, now in self._changed(command, told).items():
                watch = self.watches[key]
                before = watch.last
                self.wrong.extend(watch.see(now, writer))
                if self.ledger is not None and now is not None:
                    found = self.ledger.begun(before, now)
                    self.wrong.extend(f"{writer}: {sentence}" for sentence in found)
        elif command.collection == CAPACITY and self.ledger is not None:
            deed = Deed(writer, command, self._owner_of, self.lives)
            for row in self._changed_resources(command, told):
                if row["_id"] in self.ledger.names:
                    self.wrong.extend(self.ledger.see(row, deed))

    def let_time_pass(self, key: str) -> None:
        """Let every lease, backoff, wait and permit of one instance be over."""
        found = {"workflow_id": workflow_id_of(key)}
        row = self.facts[INSTANCES].find_one_and_update(
            found, passing.OF_INSTANCES, return_document=True
        )
        self.watches[key].skip(None if row is None else as_instance(row))
        if self.ledger is not None:
            over = passing.of_permits(workflow_id_of(key))
            self.facts[CAPACITY].update_many({"_id": {"$in": self.resources}}, over)
            self.skip_resources()

    def let_all_pass(self) -> None:
        """Let time pass for everything, unwatched."""
        found = {"workflow_id": {"$in": list(self.ids)}}
        self.facts[INSTANCES].update_many(found, passing.OF_INSTANCES)
        if self.ledger is not None:
            everyone = {"_id": {"$in": self.resources}}
            self.facts[CAPACITY].update_many(everyone, passing.OF_EVERYTHING)

    def let_resources_pass(self) -> None:
        """Let start slots, cooldowns and overrides be over."""
        if self.ledger is not None:
            everyone = {"_id": {"$in": self.resources}}
            self.facts[CAPACITY].update_many(everyone, passing.OF_RESOURCES)
            self.ledger.let_pass()
            self.skip_resources()

    def skip_resources(self) -> None:
        """Take in the resources as they are."""
        if self.ledger is not None:
            for row in self.facts[CAPACITY].find({"_id": {"$in": self.resources}}):
                self.ledger.skip(row)

    def unseen(self) -> Iterator[str]:
        """Yield what differs from what was seen last: a change that escaped."""
        for name, found in self._mine().items():
            self.facts_now[name] = list(self.facts[name].find(found))
        stored = {row["biz_key"]: as_instance(row) for row in self.facts_now[INSTANCES]}
        for key, watch in self.watches.items():
            if stored.get(key) != watch.last:
                yield f"{key} changed unseen"
        for row in self.facts_now.get(CAPACITY, ()):
            last = self.ledger.last.get(row["_id"]) if self.ledger is not None else None
            if _of_interest(row) != _of_interest(last):
                yield f"{row['_id']} changed unseen"

    def lives(self, workflow_id: str, token: str) -> bool:
        """Tell whether a token is that of a claim in force."""
        key = self.ids.get(workflow_id)
        return key is not None and self.watches[key].lives(token)

    def is_held_by(self, workflow_id: str, token: str) -> bool:
        """Tell whether an instance says that this claim holds it, be its lease over or not."""
        key = self.ids.get(workflow_id)
        last = self.watches[key].last if key is not None else None
        return last is not None and last.claim_token == token

    def put_aside(self) -> None:
        """Take every fact out of the way of other schedules, after `unseen` has read it."""
        for name, found in self._mine().items():
            if self.facts_now.get(name):
                self.aside[name] = self.facts_now[name]
                self.facts[name].delete_many(found)

    def _mine(self) -> dict[str, Mapping[str, Any]]:
        mine: dict[str, Mapping[str, Any]] = {INSTANCES: {"workflow_id": {"$in": list(self.ids)}}}
        if self.signals:
            mine[SIGNALS] = {"signal_id": {"$in": sorted(self.signals)}}
        if self.ledger is not None:
            mine[CAPACITY] = {"_id": {"$in": self.resources}}
        return mine

    def _changed(self, command: Command, told: Row | None) -> Mapping[str, WorkflowInstance | None]:
        """Return the instances a command may have changed, as they are now."""
        if told is not None:
            if command.name == "findAndModify":
                row = told.get("value")
                return {row["biz_key"]: as_instance(row)} if row else {}
            if not told.get("n", 1) or not told.get("nModified", 1):
                return {}
        return self.read([one for one in self.ids if command.names(one)] or self.ids)

    def _changed_resources(self, command: Command, told: Row | None) -> list[Row]:
        if told is not None:
            if command.name == "findAndModify":
                return [told["value"]] if told.get("value") else []
            if not told.get("n", 1) or not told.get("nModified", 1):
                return []
        return list(self.facts[CAPACITY].find({"_id": {"$in": self.resources}}))

    def _owner_of(self, token: str) -> str | None:
        owners = (watch.owners.get(token) for watch in self.watches.values())
        return next((owner for owner in owners if owner is not None), None)

    def _count(self, command: Command, told: Row | None) -> None:
        if command.name != "update":
            return
        kind, count = "commits", command.statements
        if command.names("definition_fingerprint"):
            kind, count = "claims", sum(command.names(one) for one in self.ids)
        elif not command.names(".seq"):
            kind = "hand-ons"
        if count > 1:
            self.counts[f"groups of {kind}"] += 1
            if told is not None and 0 < told.get("n", 0) < count:
                self.counts[f"groups of {kind} with a loss inside"] += 1


def as_instance(row: Row) -> WorkflowInstance:
    """Return a stored document as the instance it is."""
    return WorkflowInstance.model_validate(from_stored(row))


def _of_interest(row: Mapping[str, Any] | None) -> Row:
    return {name: row.get(name) for name in ("holders", "reservations", "starts")} if row else {}
