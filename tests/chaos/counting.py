"""The service outside that only so many may call at once: it counts who is really there.

A call is a connection that says who it is and stays open while the call lasts; it ends with its
process, however that dies. Guarantees that a call is known from its first line to its last moment.
Leaves which calls held a permit to the judge: a call whose claim was lost meanwhile is none.
"""

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: Environment variable with the server's port.
PORT = "CHAOS_COUNTING_PORT"


@dataclass(slots=True)
class Call:
    """One call: who made it, from when until when, in monotonic seconds."""

    who: dict[str, Any]
    begun: float
    ended: float = float("inf")


@dataclass(slots=True)
class Counter:
    """Every call there was."""

    port: int = 0
    calls: list[Call] = field(default_factory=list)


@contextmanager
def counting() -> Iterator[Counter]:
    """Serve until the block ends."""
    counter = Counter()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if not (line := self.rfile.readline()):
                return
            call = Call(json.loads(line), time.monotonic())
            counter.calls.append(call)
            with contextlib.suppress(OSError):
                self.wfile.write(b"welcome\n")
                self.rfile.read()
            call.ended = time.monotonic()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        counter.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield counter
        finally:
            server.shutdown()
            thread.join(10)


@contextmanager
def calling(port: int, **who: object) -> Iterator[None]:
    """Be a call for the length of a block."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(json.dumps(who).encode() + b"\n")
        connection.recv(16)
        yield


def most_at_once(calls: list[Call]) -> int:
    """Return how many of these calls lasted at one moment."""
    moments = [(call.begun, 1) for call in calls] + [(call.ended, -1) for call in calls]
    most = now = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most
