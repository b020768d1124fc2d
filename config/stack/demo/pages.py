"""The web site of the demonstration: shipped pages and a recording, one page held until told.

Guarantees that it listens on 127.0.0.1 only, counts the requests of each page, and that a held
page keeps its visitors until `release`. Leaves the files to `jobs.demo_pages` and
`jobs.demo_audio`.
"""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from config.embedded import ports
from jobs.demo_audio import RECORDING
from jobs.demo_pages import PAGES

#: Pages below this path are held.
HELD = "held"
_PATIENCE = 60.0


class PageServer:
    """Serves while its `with` block runs."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._lock = threading.Lock()
        self._visits: Counter[str] = Counter()
        self._server = ThreadingHTTPServer((ports.HOST, 0), self._handler())
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.05,), daemon=True)

    def address(self, file: str, *, held: bool = False) -> str:
        """Return the URL of a shipped page, held or not."""
        base = f"http://{ports.HOST}:{self._server.server_port}"
        return f"{base}/{HELD}/{file}" if held else f"{base}/{file}"

    def visits(self, file: str, *, held: bool = False) -> int:
        """Return how often a page was asked for."""
        with self._lock:
            return self._visits[f"/{HELD}/{file}" if held else f"/{file}"]

    def release(self) -> None:
        """Let the held page answer, now and later. On repeat: nothing."""
        self._open.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _visit(self, path: str) -> bytes | None:
        """Count a visit, wait if the page is held, and return its bytes."""
        pages = {f"/{page.file}": page.path for page in (*PAGES, RECORDING)}
        wanted = path.removeprefix(f"/{HELD}")
        if wanted not in pages:
            return None
        with self._lock:
            self._visits[path] += 1
        if path != wanted:
            self._open.wait(_PATIENCE)
        return pages[wanted].read_bytes()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Keep the terminal for the demonstration."""

            def do_GET(self) -> None:
                """Answer with the page's bytes; the page itself names its encoding."""
                body = site._visit(self.path)
                try:
                    self.send_response(404 if body is None else 200)
                    kind = "audio/wav" if self.path.endswith(".wav") else "text/html"
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body or b"")))
                    self.end_headers()
                    self.wfile.write(body or b"")
                except OSError:
                    # The visitor was killed while it waited; that is the point of the show.
                    self.close_connection = True

        return Handler
