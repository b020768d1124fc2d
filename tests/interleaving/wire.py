"""Holds the commands of chosen processes back at the driver's socket.

Guarantees that it sees every command a registered client sends, from whichever thread, whole and
already encoded; handshakes and the driver's own monitoring pass. An answer is lost as a socket
timeout, which the driver retries once and which empties no pool. Leaves the decision who may go on,
and with what fate, to a `Gate`.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from pymongo.synchronous.pool import Connection

#: Where the name of a command begins: message header, flags, section kind, document length, type.
_NAME_AT: Final = 16 + 4 + 1 + 4 + 1
#: A session in a message: its name, two lengths, the kind and name of its id, a subtype, the id.
_SESSION_BYTES: Final = 6 + 4 + 4 + 4 + 1 + 16
#: Which commands write; of others no fate but passing is of interest.
WRITES: Final = frozenset({"update", "insert", "delete", "findAndModify", "bulkWrite"})


class Fate(StrEnum):
    """What becomes of a command that was let through."""

    PASS = "pass"
    #: It is applied, its answer and that of the driver's retry never arrive.
    LOSE = "lose"
    #: Its sender hears nothing, nor does the retry arrive; it is applied later.
    LATE = "late"
    #: Its process dies before it is sent, or once it was applied.
    DIE_BEFORE = "dies before"
    DIE_AFTER = "dies after"


class Died(BaseException):
    """The process of an actor has died: nothing of it goes on."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command on its way; `message` is what goes over the wire."""

    name: str
    collection: str
    message: bytes

    def __str__(self) -> str:
        return f"{self.name} {self.collection}"

    @property
    def retry_key(self) -> object:
        """What the driver's retry of this has in common with it; None: it is not retried."""
        # Of a session's commands only one is on its way at a time, whatever other threads send.
        at = self.message.find(b"\x03lsid\0")
        session = self.message[at : at + _SESSION_BYTES]
        if not self.writes:
            return (self.name, self.collection, session)
        at = self.message.find(b"\x12txnNumber\0")
        return None if at < 0 else (session, self.message[at : at + 19])

    @property
    def writes(self) -> bool:
        """Tell whether it may change something."""
        return self.name in WRITES

    @property
    def statements(self) -> int:
        """How many updates it carries; 1 for everything that is no group."""
        at, count = _NAME_AT - 1 - 4, 0
        at += struct.unpack_from("<i", self.message, at)[0]
        while at < len(self.message) and self.message[at] == 1:  # a sequence of documents
            end = at + 1 + struct.unpack_from("<i", self.message, at + 1)[0]
            at = self.message.index(0, at + 5) + 1
            while at < end:
                at += struct.unpack_from("<i", self.message, at)[0]
                count += 1
        return max(1, count)

    def names(self, what: str) -> bool:
        """Tell whether a text occurs in it."""
        return what.encode() in self.message

    def times(self, what: str) -> int:
        """Return how often a text occurs in it."""
        return self.message.count(what.encode())


class Gate(Protocol):
    """Who decides about the commands of one process."""

    def arrive(self, command: Command) -> Fate:
        """Block until the command may go on; return its fate."""

    def finish(self, answer: bytes | None = None) -> None:
        """Note that a command is over: with the server's answer, even where its sender hears none.

        None: it was never sent, or nobody knows its answer.
        """


class Wire:
    """The patched driver, and the gates of the processes it holds back."""

    def __init__(self) -> None:
        self._gates: dict[Any, Gate] = {}
        self._fates = threading.local()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Patch the driver for as long as the block runs."""
        send, receive = Connection.send_message, Connection.receive_message
        wire = self

        def send_message(conn: Connection, message: bytes, max_doc_size: int) -> None:
            gate = wire._gate_of(conn)
            if gate is None:
                send(conn, message, max_doc_size)
                return
            fate = gate.arrive(_command(message))
            if fate is Fate.DIE_BEFORE:
                gate.finish()
                raise Died
            wire._fates.pending = (gate, fate)
            if fate is not Fate.LATE:
                send(conn, message, max_doc_size)

        def receive_message(conn: Connection, request_id: int | None) -> Any:
            gate, fate = wire._fates.__dict__.pop("pending", (None, Fate.PASS))
            reply = None
            try:
                reply = None if fate is Fate.LATE else receive(conn, request_id)
            finally:
                if gate is not None:
                    gate.finish(bytes(reply.payload_document) if reply is not None else None)
            if fate is Fate.DIE_AFTER:
                raise Died
            if fate is not Fate.PASS:
                conn._raise_connection_failure(TimeoutError("the answer was lost"))
            return reply

        patched: Any = Connection
        patched.send_message, patched.receive_message = send_message, receive_message
        try:
            yield
        finally:
            patched.send_message, patched.receive_message = send, receive

    @contextlib.contextmanager
    def gated(self, client: Any, gate: Gate) -> Iterator[None]:
        """Hold every command of this client back at a gate for as long as the block runs."""
        key = id(client.options.pool_options)
        self._gates[key] = gate
        try:
            yield
        finally:
            del self._gates[key]

    def _gate_of(self, conn: Connection) -> Gate | None:
        if not self._gates or not conn.ready:
            return None
        return self._gates.get(id(conn.opts))


def deliver(address: tuple[str, int], message: bytes) -> None:
    """Send a message that is late over a connection of its own, and wait until it was applied."""
    with socket.create_connection(address, timeout=10) as late:
        late.sendall(message)
        head = _exactly(late, 4)
        _exactly(late, struct.unpack("<i", head)[0] - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = source.recv(count - len(data))
        if not piece:
            raise ConnectionError("the server closed the connection of a late command")
        data += piece
    return data


def _command(message: bytes) -> Command:
    end = message.index(0, _NAME_AT)
    kind = message[_NAME_AT - 1]
    collection = ""
    if kind == 2:  # a string: the collection; a command on the database has a number there
        length = struct.unpack_from("<i", message, end + 1)[0]
        collection = message[end + 5 : end + 4 + length].decode()
    return Command(message[_NAME_AT:end].decode(), collection, message)
