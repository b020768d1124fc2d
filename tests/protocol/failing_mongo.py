"""A mongod of the tests' own that fails commands on demand, before or after it applied them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from pymongo import MongoClient

from config.embedded import MongoServer

#: Ways to lose an answer; the driver itself repeats a command once, so two failures reach us.
LOST_ANSWERS: dict[str, dict[str, Any]] = {
    "the connection breaks before it is applied": {"closeConnection": True},
    "the primary steps down before it is applied": {
        "errorCode": 10107,
        "errorLabels": ["RetryableWriteError"],
    },
    "the server shuts down after it was applied": {
        "writeConcernError": {
            "code": 91,
            "errmsg": "shutdown in progress",
            "errorLabels": ["RetryableWriteError"],
        }
    },
    "nobody confirms the majority after it was applied": {
        "writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}
    },
}
#: How many commands fail for one operation of ours to learn of it.
FAILURES = {
    "the connection breaks before it is applied": 2,
    "the primary steps down before it is applied": 2,
    "the server shuts down after it was applied": 2,
    "nobody confirms the majority after it was applied": 1,
}


class FailingMongo(MongoServer):
    """A replica set of one with test commands."""

    def _command(self, port: int) -> Sequence[str]:
        return [*super()._command(port), "--setParameter", "enableTestCommands=1"]

    @contextlib.contextmanager
    def failing(self, *commands: str, how: str, times: int | None = None) -> Iterator[None]:
        """Fail the next commands of kernels in this way: `times` operations of ours."""
        data = {"failCommands": list(commands), "appName": "baton", **LOST_ANSWERS[how]}
        count = FAILURES[how] * (times or 1)
        self._set(mode={"times": count}, data=data)
        try:
            yield
        finally:
            self._set(mode="off")

    @contextlib.contextmanager
    def silent(self, *commands: str) -> Iterator[None]:
        """Break the connection of every such command until the block ends."""
        data = {"failCommands": list(commands), "appName": "baton", "closeConnection": True}
        self._set(mode="alwaysOn", data=data)
        try:
            yield
        finally:
            self._set(mode="off")

    def _set(self, **settings: Any) -> None:
        with MongoClient[dict[str, Any]](self.url, appname="tests") as client:
            client.admin.command("configureFailPoint", "failCommand", **settings)


class StandaloneMongo(MongoServer):
    """A mongod that belongs to no replica set."""

    @property
    def url(self) -> str:
        """`mongodb://127.0.0.1:PORT/`."""
        return f"mongodb://{self._address}/?directConnection=true"

    def _command(self, port: int) -> Sequence[str]:
        command = list(super()._command(port))
        at = command.index("--replSet")
        del command[at : at + 2]
        return [
            part for i, part in enumerate(command) if "--oplogSize" not in command[i - 1 : i + 1]
        ]

    def _prepare(self) -> None:
        """Leave it alone."""
