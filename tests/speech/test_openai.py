"""The OpenAI-compatible endpoint's client, against a server of the test's own."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from jobs.ports import SpeechFailedForNow, SpeechRefused, SpeechState
from jobs.speech import ENDPOINT, SERVICE, OpenAiTranscriber, open_desk
from tests.speech.service import one_sentence


class Endpoint:
    """Answers every call the same, and keeps the last one."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.url = ""
        self.path = ""
        self.headers: dict[str, str] = {}
        self.content = b""


@contextmanager
def endpoint(status: int = 200, body: Any = None) -> Iterator[Endpoint]:
    """Serve an endpoint for the length of a block."""
    raw = body if isinstance(body, bytes) else json.dumps(body or {"text": "Hello."}).encode()
    kept = Endpoint(status, raw)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.path, kept.headers = self.path, dict(self.headers.items())
            kept.content = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(kept.status)
            self.send_header("Content-Length", str(len(kept.body)))
            self.end_headers()
            self.wfile.write(kept.body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def transcriber(url: str) -> OpenAiTranscriber:
    return OpenAiTranscriber(base_url=url, model="whisper-1", api_key="secret-key")


def test_the_recording_is_sent_and_the_text_comes_back_at_once() -> None:
    with endpoint() as served:
        audio = one_sentence()
        task = transcriber(served.url + "/").submit(
            audio, language="pt-BR", idempotency_key="key-1"
        )
    assert (task.state, task.text) == (SpeechState.SUCCEEDED, "Hello.")
    assert served.path == "/v1/audio/transcriptions"
    assert served.headers["Authorization"] == "Bearer secret-key"
    assert served.headers["Idempotency-Key"] == "key-1"
    assert audio in served.content
    assert b'name="model"\r\n\r\nwhisper-1\r\n' in served.content
    assert b'name="language"\r\n\r\npt\r\n' in served.content


@pytest.mark.parametrize(
    ("status", "body", "error", "code"),
    [
        (401, {"error": {"message": "bad key"}}, SpeechRefused, "unauthorized"),
        (402, {}, SpeechRefused, "quota_exhausted"),
        (413, {}, SpeechRefused, "too_large"),
        (400, {"error": {"message": "no"}}, SpeechRefused, "rejected"),
        (429, {}, SpeechFailedForNow, "rate_limited"),
        (503, b"<html>", SpeechFailedForNow, "server_error"),
        (200, b"not json", SpeechFailedForNow, "cut_short"),
        (200, {"text": 3}, SpeechFailedForNow, "cut_short"),
    ],
)
def test_every_answer_is_a_text_or_a_named_failure(
    status: int, body: Any, error: type[Any], code: str
) -> None:
    with endpoint(status, body) as served, pytest.raises(error) as failed:
        transcriber(served.url).submit(one_sentence(), language=None, idempotency_key="k")
    assert failed.value.code == code
    assert "secret-key" not in str(failed.value)


def test_settings_that_contradict_each_other_are_refused_at_start() -> None:
    with pytest.raises(SpeechRefused):
        open_desk(service_url="http://127.0.0.1:8090", endpoint_url="https://x/v1", model="")
    with pytest.raises(SpeechRefused):
        OpenAiTranscriber(base_url="https://x/v1", model="m", api_key="line\nbreak")


def test_new_recordings_go_to_the_endpoint_and_old_tasks_to_where_they_are() -> None:
    plain = open_desk(service_url="http://127.0.0.1:8090")
    assert plain.default == SERVICE
    both = open_desk(service_url="http://127.0.0.1:8090", endpoint_url="https://x/v1", model="m")
    assert both.default == ENDPOINT
    assert both.provider(SERVICE) == plain.provider(SERVICE)
    with pytest.raises(SpeechRefused, match="elsewhere"):
        both.provider("elsewhere")
