"""The very statements a worker sends for one workflow, and a loop that sends them with no engine.

Guarantees that the raw limit does the same work as the engine: the same guards and pipelines on
documents of the same shape, in groups of the same size, as durably. Leaves to others: how often.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import bson
from bson import ObjectId
from pymongo import MongoClient, UpdateOne, monitoring

from bench.site import QUEUE, connect, mongo
from bench.workflows import THREE, definitions

INSTANCES = "workflow_instances"
Statement = dict[str, Any]


class _Recorder(monitoring.CommandListener):
    """Keeps what is written to the instances of one database, once it is switched on."""

    def __init__(self) -> None:
        self.database = ""
        self.statements: list[Statement] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        command = event.command
        wanted = (self.database, INSTANCES)
        if (event.database_name, command.get(event.command_name)) != wanted:
            return
        if event.command_name == "update":
            self.statements += ({"q": each["q"], "u": each["u"]} for each in command["updates"])
        elif event.command_name == "findAndModify":
            self.statements.append({"q": command["query"], "u": command["update"]})

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """What was asked is what counts."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """What was asked is what counts."""


_RECORDER = _Recorder()


def record(environment: Mapping[str, str], path: Path) -> int:
    """Run one workflow of three steps, keep its statements in a file, return how many they are."""
    if not _RECORDER.database:
        monitoring.register(_RECORDER)
    kernel = connect(environment)
    kernel.ensure_schema()
    for definition in definitions():
        kernel.register(definition)
    started = kernel.start_or_resume(THREE, biz_key="recorded", input={"number": 1})
    with mongo(environment) as client:
        fresh = client[environment["BATON_DATABASE"]][INSTANCES].find_one()
    _RECORDER.database, _RECORDER.statements = environment["BATON_DATABASE"], []
    kernel.drain([QUEUE])
    statements = copy.deepcopy(_RECORDER.statements)
    _RECORDER.database = "none"
    kernel.close()
    path.write_bytes(bson.encode({"fresh": fresh, "statements": statements}))
    assert all(each["q"]["workflow_id"] == started.workflow_id for each in statements)
    return len(statements)


class Bare:
    """Documents like fresh instances, and the recorded statements to be sent on each of them."""

    def __init__(self, path: Path, workflows: int) -> None:
        recorded = bson.decode(path.read_bytes())
        self._statements: list[Statement] = recorded["statements"]
        self._client: MongoClient[dict[str, Any]] = mongo(os.environ)
        self._collection = self._client[os.environ["BATON_DATABASE"]][INSTANCES]
        self._names = [f"{os.getpid()}-{number}" for number in range(workflows)]
        self._collection.insert_many([_like(recorded["fresh"], name) for name in self._names])

    def run(self, group: int) -> int:
        """Send every statement for every document, `group` documents at a time."""
        for names in _chunks(self._names, group):
            for number, statement in enumerate(self._statements):
                assert self._send(number, statement, names) == len(names), statement["q"]
        return len(self._names)

    def _send(self, number: int, statement: Statement, names: list[str]) -> int:
        if len(names) == 1:
            found = statement["q"] | {"workflow_id": names[0]}
            return int(self._collection.update_one(found, statement["u"]).matched_count)
        if number == 0:  # the claim: one statement for the whole group, as the engine sends it
            found = statement["q"] | {"workflow_id": {"$in": names}}
            return int(self._collection.update_many(found, statement["u"]).matched_count)
        updates = [_update(statement, name) for name in names]
        return int(self._collection.bulk_write(updates, ordered=False).matched_count)


def bare_document(name: str) -> dict[str, Any]:
    """Return a document about as large as a fresh instance of three steps."""
    step = {"status": "pending", "seq": 0, "attempt": 0, "padding": "x" * 200}
    steps = dict.fromkeys(("one", "two", "three"), step)
    return {"workflow_id": name, "claim_token": "t", "revision": 0, "steps": steps}


def _update(statement: Statement, name: str) -> UpdateOne:
    return UpdateOne(statement["q"] | {"workflow_id": name}, statement["u"])


def _like(fresh: dict[str, Any], name: str) -> dict[str, Any]:
    return fresh | {"_id": ObjectId(), "workflow_id": name, "biz_key": name}


def _chunks(names: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]
