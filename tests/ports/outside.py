"""A web server whose every page is a function of the test.

Guarantees: it listens on a free port of 127.0.0.1 and is gone when the block ends, whatever its
pages still do (`closing` is set first, pages that wait must wait on it). Leaves to others: the
pages.
"""

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


class Visit(BaseHTTPRequestHandler):
    """One request, with the means to answer it well or badly."""

    protocol_version = "HTTP/1.1"
    outside: "Outside"
    body: bytes

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        self.close_connection = True
        self.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.outside.visits.append(self.path)
        self.outside.hosts.append(self.headers.get("Host", ""))
        self.outside.headers.append(dict(self.headers.items()))
        # A client that went away is what several tests are about.
        with suppress(OSError):
            self.outside.pages[self.path.partition("?")[0]](self)

    def answer(
        self, body: bytes = b"", *, status: int = 200, kind: str = "text/html", **headers: str
    ) -> None:
        """Answer properly; header names are written with underscores."""
        self.begin(status=status, kind=kind, Content_Length=str(len(body)), **headers)
        self.wfile.write(body)

    def begin(self, *, status: int = 200, kind: str = "text/html", **headers: str) -> None:
        """Send the head only."""
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()


@dataclass(kw_only=True)
class Outside:
    """The running server."""

    pages: dict[str, Callable[[Visit], None]]
    url: str = ""
    port: int = 0
    visits: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: Event = field(default_factory=Event)


class _Server(ThreadingHTTPServer):
    """Clients that break off are part of the tests, not news for the terminal."""

    def handle_error(self, request: object, client_address: object) -> None:
        return


@contextmanager
def outside(
    pages: dict[str, Callable[[Visit], None]], *, tls: ssl.SSLContext | None = None
) -> Iterator[Outside]:
    """Serve `pages` while the block runs, over TLS if asked to."""
    world = Outside(pages=pages)
    handler = type("BoundVisit", (Visit,), {"outside": world})
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            # The handshake is left to the thread that serves the visit.
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        world.port = server.server_port
        world.url = f"http://127.0.0.1:{world.port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield world
        finally:
            world.closing.set()
            server.shutdown()
            thread.join()


def resolving_to(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    """A resolver for which every name has these addresses."""

    def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


def article(text: str, *, title: str = "A page", charset: str | None = None) -> str:
    """A page whose main text is `text`."""
    meta = f'<meta charset="{charset}">' if charset else ""
    return (
        f"<!DOCTYPE html><html lang='en'><head>{meta}<title>{title}</title></head><body>"
        f"<nav><a href='/'>Home</a></nav><article><h1>{title}</h1>"
        f"<p>{text}</p></article><footer>Imprint</footer></body></html>"
    )


PROSE = (
    "The ferry crosses the strait four times a day, whatever the weather has to say about it. "
    "Its captain has made the journey some eleven thousand times and still looks at the water "
    "before every departure, because the water, she says, has not made it even once before."
)
