"""Article pages to try the product on, and a small server that serves them like a web site.

Guarantees: three real articles inside real clutter (menus, banners, scripts), one in a legacy
encoding; the server listens on 127.0.0.1 only. Leaves to others: allowing the fetcher to visit
this machine (`PageFetcher(allow_private=True)`). Origin and licence: `LICENSE.md`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPage:
    """One shipped page."""

    file: str
    title: str
    #: The encoding the file is really stored in.
    charset: str

    @property
    def path(self) -> Path:
        """The file itself."""
        return FOLDER / self.file


PAGES = (
    DemoPage(file="tides.html", title="Why the sea comes in twice a day", charset="utf-8"),
    DemoPage(file="bridges.html", title="How a stone bridge stands up", charset="windows-1252"),
    DemoPage(file="tea.html", title="One leaf, six teas", charset="utf-8"),
)


class _Handler(SimpleHTTPRequestHandler):
    """Serve the folder, without naming an encoding: the pages name their own."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Keep the terminal for the demo."""

    def do_GET(self) -> None:
        """Serve the shipped pages and nothing else of the folder."""
        if self.path.lstrip("/") in {page.file for page in PAGES}:
            super().do_GET()
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        """Nobody asks for heads alone, and the base class would answer for the whole folder."""
        self.send_error(405)


@contextmanager
def serve_pages(port: int = 0) -> Iterator[str]:
    """Serve the pages while the block runs; gives the base URL, such as `http://127.0.0.1:8123`.

    Port 0 takes a free one. Raises: OSError when the port is taken.
    """
    handler = partial(_Handler, directory=str(FOLDER))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,), name="demo-pages", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
