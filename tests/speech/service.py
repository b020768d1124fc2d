"""A speech service of the test's own, as a real process, and the site its recordings come from.

Guarantees: the process ends with the test; a restart listens on the same port and folder. Leaves
what is asked of it to the test.
"""

import io
import threading
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from signal import SIGKILL
from typing import Any, Self

import httpx

from config.embedded import ports
from jobs.demo_audio import RECORDING
from jobs.speech import ServiceClient
from tests.kit.processes import Child, python

#: Quickly recognised: half a second without a word in it would be an empty transcript, so this is
#: the shipped recording's first sentence.
SENTENCE_SECONDS = 3.1


class SpeechProcess:
    """`manage.py speech_service` with switchable faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = ports.free_port()
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Where it listens, now or after the next start."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> ServiceClient:
        """The product's own client of it."""
        return ServiceClient(base_url=self.url)

    def start(self) -> None:
        """Start it, or start it again."""
        options = ("--port", str(self.port), "--folder", str(self.folder), "--faults")
        self._child = python("manage.py", "speech_service", *options)
        self._child.wait_for_line("speech service listens")

    def kill(self) -> None:
        """SIGKILL it."""
        assert self._child is not None
        self._child.send(SIGKILL)
        self._child.__exit__()
        self._child = None

    def switch(self, **faults: Any) -> None:
        """Switch faults."""
        answer = httpx.put(f"{self.url}/faults", json=faults, trust_env=False)
        assert answer.status_code == 200, answer.text

    def lose(self, task_id: str) -> None:
        """Let it lose a task."""
        answer = httpx.delete(f"{self.url}/tasks/{task_id}", trust_env=False)
        assert answer.json() == {"lost": True}

    def asked(self) -> dict[str, int]:
        """Say how often what was asked since it was started."""
        answer = httpx.get(f"{self.url}/faults", trust_env=False)
        counts: dict[str, int] = answer.json()["asked"]
        return counts

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.__exit__()


def one_sentence() -> bytes:
    """Cut the shipped recording after its first sentence."""
    with wave.open(str(RECORDING.path)) as whole:
        frames = whole.readframes(int(SENTENCE_SECONDS * whole.getframerate()))
    return wav(frames)


def wav(frames: bytes, *, rate: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    """Wrap samples in a WAV file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(frames)
    return out.getvalue()


class Recordings:
    """Serves bytes by path, and counts."""

    def __init__(self, url: str) -> None:
        self.url = url
        #: path → (status, media type, body)
        self.files: dict[str, tuple[int, str, bytes]] = {}
        self.asked: list[str] = []

    def put(self, path: str, body: bytes, *, kind: str = "audio/wav", status: int = 200) -> str:
        """Serve a file; returns its address."""
        self.files[path] = (status, kind, body)
        return self.url + path


@contextmanager
def serving_recordings() -> Iterator[Recordings]:
    """Serve recordings on a free local port for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            status, kind, body = site.files.get(self.path, (404, "text/plain", b"not here"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Recordings(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
