"""End this process before or after the k-th command it sends to MongoDB, Redis or SQL.

Guarantees: every command of every thread is counted once, from `arm()` on; the process ends inside
the driver's call, so nothing of it runs on. Leaves to the caller when to arm.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Never

import redis
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from pymongo import monitoring

#: Exit status of a process that ended itself; a SIGKILL shows as its signal.
KILLED_STATUS = 77


class When(StrEnum):
    """On which side of a command the process ends."""

    BEFORE = "before"
    AFTER = "after"


class How(StrEnum):
    """How it ends: both leave no time to clean up, one of them not even to this process."""

    EXIT = "exit"
    SIGKILL = "sigkill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Where one process ends: at command `at`, counted from 1."""

    at: int
    when: When
    how: How


class Killer:
    """Counts commands and ends the process at the one it was told.

    `report` is a file descriptor that gets one JSON line naming the command, before the end.
    """

    def __init__(self, kill: Kill | None, report: int) -> None:
        self._kill = kill
        self._report = report
        self._armed = False
        self._count = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Commands seen so far."""
        return self._count

    def arm(self) -> None:
        """Count from here on."""
        self._armed = True

    def before(self, command: str) -> int:
        """Note a command that is about to be sent; return its number, 0 while not armed."""
        if not self._armed:
            return 0
        with self._lock:
            self._count += 1
            number = self._count
        if self._is_due(number, When.BEFORE):
            self._die(command)
        return number

    def after(self, number: int, command: str) -> None:
        """Note the answer to a command."""
        if number and self._is_due(number, When.AFTER):
            self._die(command)

    def _is_due(self, number: int, when: When) -> bool:
        return self._kill is not None and self._kill.at == number and self._kill.when is when

    def _die(self, command: str) -> Never:
        assert self._kill is not None
        os.write(self._report, json.dumps({"ended": "killed", "result": command}).encode() + b"\n")
        if self._kill.how is How.SIGKILL:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()
        os._exit(KILLED_STATUS)


def watch(killer: Killer) -> None:
    """Let the killer see every command of the clients this process makes from now on."""
    monitoring.register(_MongoCommands(killer))
    _watch_redis(killer)
    _SqlStatements(killer).watch()


class _MongoCommands(monitoring.CommandListener):
    def __init__(self, killer: Killer) -> None:
        self._killer = killer
        self._numbers: dict[int, int] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        number = self._killer.before(f"mongo {event.command_name}")
        self._numbers[event.request_id] = number

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._ended(event)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._ended(event)

    def _ended(
        self, event: monitoring.CommandSucceededEvent | monitoring.CommandFailedEvent
    ) -> None:
        number = self._numbers.pop(event.request_id, 0)
        self._killer.after(number, f"mongo {event.command_name}")


def _watch_redis(killer: Killer) -> None:
    client: Any = redis.Redis
    send: Callable[..., Any] = client._send_command_parse_response

    def watched(self: Any, conn: Any, command_name: str, *args: Any, **options: Any) -> Any:
        number = killer.before(f"redis {command_name}")
        try:
            return send(self, conn, command_name, *args, **options)
        finally:
            killer.after(number, f"redis {command_name}")

    client._send_command_parse_response = watched


class _SqlStatements:
    def __init__(self, killer: Killer) -> None:
        self._killer = killer

    def watch(self) -> None:
        connection_created.connect(self._wrap, weak=False)

    def _wrap(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        if self._execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._execute)

    def _execute(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        command = f"sql {sql.split(maxsplit=1)[0]}"
        number = self._killer.before(command)
        result = execute(sql, params, many, context)
        self._killer.after(number, command)
        return result
