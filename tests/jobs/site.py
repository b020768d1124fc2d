"""A web site of the test's own: real pages over real sockets, counted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARTICLE_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>How tides turn a mill</title></head>
<body><nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article><h1>How tides turn a mill</h1>
<p>A tide mill stores the sea behind a dam twice a day. When the tide rises, the water pushes open
a gate and fills the pond behind it. When the tide falls, the gate closes by itself and keeps the
water in.</p>
<p>The miller waits until the level outside has dropped below the wheel. Then the stored water is
let out through a narrow race and turns the wheel for some hours. Because the tide comes about fifty
minutes later every day, the miller's working hours move around the clock.</p>
<p>Tide mills were built on many coasts of Europe from the early Middle Ages. Several of them still
grind flour for visitors, and their ponds have become a quiet home for wading birds. Engineers look
at them again today, since the same idea drives the turbines of modern tidal power stations.</p>
</article><footer>Imprint</footer></body></html>"""


class Site:
    """Answers each path with what the test put there; unknown paths are 404."""

    def __init__(self, url: str) -> None:
        self.url = url
        #: path → (status, body)
        self.pages: dict[str, tuple[int, str]] = {"/tides": (200, ARTICLE_HTML)}
        #: Requests so far, by path.
        self.asked: list[str] = []
        #: path → statuses of the next POSTs; 204 when there is none left.
        self.answers: dict[str, list[int]] = {}
        #: POSTs so far: path, headers, body.
        self.posted: list[tuple[str, dict[str, str], bytes]] = []


@contextmanager
def running_site() -> Iterator[Site]:
    """Serve a site on a free local port for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            status, body = site.pages.get(self.path, (404, "not here"))
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            site.posted.append((self.path, dict(self.headers), body))
            answers = site.answers.get(self.path, [])
            self.send_response(answers.pop(0) if answers else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
