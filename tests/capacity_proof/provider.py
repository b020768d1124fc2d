"""The outside world of these tests: a server that counts who calls it, and when.

```
GET  /call?workflow=&step=&owner=&group=&ms=&gate=&granted=   holds the call, then 200 {}
GET  /calls                                                   what was called so far, as JSON
POST /open?gate=                                              lets the calls of that gate go home
```

A call lasts `ms` milliseconds, or until its gate opens, or until its caller is gone. Callers keep
their connections, as clients of a service do. `owner` is
what a permit belongs to (workflow, step, claim); `group` tells the runs of different tests apart.

Guarantees: a call is noted before it is held, on this process's clocks; begin and end are seen by
this process alone, whatever the workers believe. Leaves to others: judging (`calls`).
"""

import http.client
import http.server
import json
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from tests.capacity_proof.calls import Call
from tests.kit.processes import Child, python

#: How often a held call looks at its gate, seconds.
_LOOK_EVERY = 0.02
#: Longest that a call is held, seconds.
_HELD_MAX = 300.0


class _Book:
    """Every call, and the gates that are open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[dict[str, Any]] = []
        self._open: set[str] = set()

    def begin(self, query: dict[str, str]) -> dict[str, Any]:
        with self._lock:
            call = {
                **{name: query.get(name, "") for name in ("workflow", "step", "owner", "group")},
                "granted": float(query["granted"]) if query.get("granted") else None,
                "began": time.monotonic(),
                "began_at": time.time(),
                "ended": None,
                "dropped": False,
            }
            self._calls.append(call)
            return call

    def end(self, call: dict[str, Any], *, dropped: bool) -> None:
        with self._lock:
            call["ended"], call["dropped"] = time.monotonic(), dropped

    def open(self, gate: str) -> None:
        with self._lock:
            self._open.add(gate)

    def is_open(self, gate: str) -> bool:
        with self._lock:
            return gate in self._open

    def dump(self) -> bytes:
        with self._lock:
            return json.dumps({"now": time.monotonic(), "calls": self._calls}).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: Head and body are two writes; the second must not wait until the first was acknowledged.
    disable_nagle_algorithm = True
    book: _Book

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/calls":
            self._answer(self.book.dump())
            return
        query = dict(parse_qsl(parts.query))
        call = self.book.begin(query)
        is_heard = self._hold(query)
        self.book.end(call, dropped=not is_heard)
        if is_heard:
            self._answer(b"{}")

    def do_POST(self) -> None:
        self.book.open(dict(parse_qsl(urlsplit(self.path).query))["gate"])
        self._answer(b"{}")

    def _hold(self, query: dict[str, str]) -> bool:
        """Hold the call; False when its caller went away."""
        gate = query.get("gate", "")
        end = time.monotonic() + (_HELD_MAX if gate else float(query.get("ms", "0")) / 1000)
        while (left := end - time.monotonic()) > 0 and not (gate and self.book.is_open(gate)):
            turn = min(left, _LOOK_EVERY) if gate else left
            readable, _, _ = select.select([self.connection], [], [], turn)
            # A caller that has asked says no more; what can be read is its end.
            if readable:
                return False
        return True

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class Provider:
    """The server as the tests see it."""

    def __init__(self, url: str, child: Child) -> None:
        self.url = url
        self._child = child

    def calls(self, group: str) -> list[Call]:
        """Return the calls of a group, in the order in which they came."""
        with urlopen(f"{self.url}/calls", timeout=30) as answer:
            said = json.load(answer)
        return [Call(**call) for call in said["calls"] if call["group"] == group]

    def open(self, gate: str) -> None:
        """Let the calls of a gate, now and later, go home."""
        request = Request(f"{self.url}/open?gate={quote(gate)}", method="POST")
        urlopen(request, timeout=30).close()


class _Kept(threading.local):
    """The connections of one thread, which outlast its calls."""

    def __init__(self) -> None:
        self.connections: dict[str, http.client.HTTPConnection] = {}


_kept = _Kept()


def ask(url: str, **query: object) -> None:
    """Call the provider, as an activity does; returns when the call is over."""
    known = {name: value for name, value in query.items() if value is not None}
    place = urlsplit(url).netloc
    connection = _kept.connections.pop(place, None)
    if connection is None:
        connection = http.client.HTTPConnection(place, timeout=_HELD_MAX)
    try:
        connection.request("GET", f"/call?{urlencode(known)}")
        connection.getresponse().read()
    except BaseException:
        connection.close()
        raise
    _kept.connections[place] = connection


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Run the server in a process of its own until the block ends."""
    with python("-m", "tests.capacity_proof.provider") as child:
        found = child.wait_for_line(r"listening on (http://\S+)", timeout=60)
        yield Provider(found[1], child)


def main() -> None:
    """Serve until the process is ended."""
    _Handler.book = _Book()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        sys.stdout.write(f"listening on http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
