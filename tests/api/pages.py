"""The demo's articles on a local address, for jobs that run to their end."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "jobs/demo_pages"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    """Serve the demo's articles and return the address."""
    handler = functools.partial(_Quiet, directory=str(PAGES))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()
