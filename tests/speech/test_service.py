"""The speech service over HTTP: tasks, keys, restarts, and what it refuses."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.demo_audio import RECORDING
from jobs.ports import SpeechFailedForNow, SpeechRefused, SpeechState
from jobs.speech import ServiceClient
from tests.kit.waiting import eventually
from tests.speech.service import SpeechProcess, one_sentence, wav


def post(speech: SpeechProcess, content: bytes, **headers: str) -> Any:
    return httpx.post(
        f"{speech.url}/tasks",
        content=content,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        trust_env=False,
    )


def heard(client: ServiceClient, task_id: str) -> str:
    def look() -> str | None:
        task = client.query(task_id)
        return task.text if task.state is SpeechState.SUCCEEDED else None

    return str(eventually(look, timeout=60, interval=0.1))


def test_the_shipped_recording_is_understood(speech: SpeechProcess) -> None:
    client = speech.client
    audio = RECORDING.path.read_bytes()
    task = client.submit(audio, language="en", idempotency_key="shipped-recording")
    text = heard(client, task.task_id)
    read = set(RECORDING.transcript.lower().replace(",", "").replace(".", "").split())
    understood = set(text.lower().replace(".", "").split())
    assert len(read & understood) / len(read) > 0.7
    assert text.count(".") == 2


def test_one_key_is_one_task(speech: SpeechProcess) -> None:
    audio = one_sentence()
    first = speech.client.submit(audio, language=None, idempotency_key="one-key")
    again = speech.client.submit(audio, language=None, idempotency_key="one-key")
    assert first.task_id == again.task_id
    with pytest.raises(SpeechRefused, match="another recording"):
        speech.client.submit(wav(bytes(3200)), language=None, idempotency_key="one-key")


def test_accepted_tasks_outlive_the_process(tmp_path: Path) -> None:
    with SpeechProcess(tmp_path) as mine:
        mine.switch(slow_seconds=60)
        running = mine.client.submit(one_sentence(), language=None, idempotency_key="a")
        queued = mine.client.submit(one_sentence(), language=None, idempotency_key="b")
        eventually(lambda: mine.client.query(running.task_id).state is SpeechState.RUNNING)
        mine.kill()
        mine.start()
        assert "young man" in heard(mine.client, running.task_id)
        assert "young man" in heard(mine.client, queued.task_id)


def test_it_refuses_what_it_cannot_read(speech: SpeechProcess) -> None:
    for content, words in ((b"x", "no WAV"), (b"", "no WAV"), (wav(b""), "no sound")):
        answer = post(speech, content)
        assert answer.status_code == 415
        assert words in answer.json()["error"]["message"]
    assert post(speech, one_sentence(), Idempotency_Key="k" * 256).status_code == 400
    assert post(speech, one_sentence(), Callback_Url="file:///etc/passwd").status_code == 400


def test_unknown_addresses_tasks_and_methods_are_answered(speech: SpeechProcess) -> None:
    with httpx.Client(base_url=speech.url, trust_env=False) as http:
        assert http.get("/health").json() == {"status": "ok"}
        assert http.get("/tasks/none").status_code == 404
        assert http.get("/").status_code == 404
        assert http.post("/other", content=b"x").status_code == 404
        assert http.put("/faults", content=b"{").status_code == 400
        assert http.put("/faults", json={"explode": 1}).status_code == 400
        assert http.put("/faults", json={"errors": -1}).status_code == 400
        assert http.patch("/tasks").status_code == 501
    assert speech.client.query("none").state is SpeechState.UNKNOWN


def test_a_client_says_what_went_wrong(speech: SpeechProcess) -> None:
    speech.switch(errors=1)
    with pytest.raises(SpeechFailedForNow) as failed:
        speech.client.query("any")
    assert failed.value.code == "server_error"
    away = ServiceClient(base_url="http://127.0.0.1:1")
    with pytest.raises(SpeechFailedForNow) as unreachable:
        away.query("any")
    assert unreachable.value.code == "connection_failed"


@pytest.mark.parametrize("url", ["", "speech", "ftp://x/", "http://", "http:///x"])
def test_a_base_url_that_is_none_is_refused_at_start(url: str) -> None:
    with pytest.raises(SpeechRefused) as refused:
        ServiceClient(base_url=url)
    assert refused.value.code == "bad_setting"
