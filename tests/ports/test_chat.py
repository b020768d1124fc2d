"""The chat adapter against a local server that speaks the protocol, and one that does not."""

import json
import threading
from collections.abc import Callable

import pytest

from jobs.composing import ChatComposer, choose_composer
from jobs.ports.composition import Composition
from jobs.ports.errors import ComposeFailedForNow, ComposeRefused, PortCancelled
from kernel import NonRetryable
from tests.kit.waiting import eventually
from tests.ports.outside import Outside, Visit, outside

ANSWER = ["The ferry ", "crosses. It ", "is — punctual", ".", " Nobody complains."]
PATH = "/v1/chat/completions"


def composer(world: Outside, *, timeout: float = 10) -> ChatComposer:
    return ChatComposer(
        base_url=f"{world.url}/v1/", model="small-1", api_key="sk-secret", timeout=timeout
    )


def ask(
    page: Callable[[Visit], None], *, pieces: list[str] | None = None, count: int = 5
) -> tuple[Composition, Outside]:
    with outside({PATH: page}) as world:
        made = composer(world).compose(
            "A text.",
            title="The ferry",
            max_sentences=count,
            on_text=None if pieces is None else pieces.append,
            idempotency_key="wf_1:1:compose",
        )
        return made, world


def failure(page: Callable[[Visit], None]) -> ComposeRefused | ComposeFailedForNow:
    with pytest.raises((ComposeRefused, ComposeFailedForNow)) as caught:
        ask(page)
    error = caught.value
    assert isinstance(error, ComposeRefused | ComposeFailedForNow)
    assert "sk-secret" not in str(error)
    return error


def event(text: str | None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


def stream(visit: Visit, *events: bytes) -> None:
    visit.begin(kind="text/event-stream; charset=utf-8")
    for data in events:
        visit.wfile.write(data)
        visit.wfile.flush()


def good(visit: Visit) -> None:
    stream(visit, *(event(piece) for piece in ANSWER), event(None, "stop"), b"data: [DONE]\n\n")


def test_streamed_answer_becomes_a_composition() -> None:
    pieces: list[str] = []
    made, world = ask(good, pieces=pieces)
    assert pieces == ANSWER
    assert made.sentences == ["The ferry crosses.", "It is — punctual.", "Nobody complains."]
    assert made.summary == "".join(ANSWER)
    assert (made.model, made.title, made.source_words) == ("small-1", "The ferry", 2)
    assert world.visits == [PATH]


def test_request_carries_key_model_text_and_idempotency_key() -> None:
    bodies: list[bytes] = []

    def remember(visit: Visit) -> None:
        bodies.append(visit.body)
        good(visit)

    _, world = ask(remember)
    sent = json.loads(bodies[0])
    assert (sent["model"], sent["stream"]) == ("small-1", True)
    assert "5" in sent["messages"][0]["content"]
    assert "A text." in sent["messages"][1]["content"]
    headers = world.headers[0]
    assert headers["Authorization"] == "Bearer sk-secret"
    assert headers["Idempotency-Key"] == "wf_1:1:compose"


def test_longer_answers_are_cut_to_the_sentences_asked_for() -> None:
    made, _ = ask(good, count=2)
    assert made.summary == "The ferry crosses. It is — punctual."


def test_events_split_anywhere_and_odd_line_ends_are_understood() -> None:
    whole = b": hello\r\n\r\nevent: x\r\nid: 1\r\n" + b"".join(map(event, ANSWER))
    whole += b"data: [DONE]"

    def byte_by_byte(visit: Visit) -> None:
        stream(visit, *(bytes([byte]) for byte in whole))

    made, _ = ask(byte_by_byte)
    assert made.summary == "".join(ANSWER)


def test_server_that_does_not_stream_is_understood() -> None:
    def plain(visit: Visit) -> None:
        message = {"role": "assistant", "content": "It crosses."}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
        visit.answer(json.dumps(body).encode(), kind="application/json")

    pieces: list[str] = []
    made, _ = ask(plain, pieces=pieces)
    assert made.summary == "It crosses."
    assert pieces == ["It crosses."]


def test_finish_reason_ends_a_stream_without_done() -> None:
    made, _ = ask(lambda visit: stream(visit, event("It crosses."), event(None, "stop")))
    assert made.summary == "It crosses."


def server_error(status: int, error: dict[str, str] | str, **headers: str) -> Callable[..., None]:
    body = json.dumps({"error": error}).encode()
    return lambda visit: visit.answer(body, status=status, kind="application/json", **headers)


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, {"message": "bad model"}, "rejected"),
        (404, "no such model", "rejected"),
        (413, {}, "rejected"),
        (401, {"message": "bad key"}, "unauthorized"),
        (403, {}, "unauthorized"),
        (402, {}, "quota_exhausted"),
        (429, {"code": "insufficient_quota"}, "quota_exhausted"),
        (301, {}, "bad_setting"),
    ],
)
def test_final_answer_is_not_retried(status: int, error: dict[str, str] | str, code: str) -> None:
    caught = failure(server_error(status, error))
    assert isinstance(caught, NonRetryable)
    assert caught.code == code


@pytest.mark.parametrize(
    ("status", "headers", "code", "wait"),
    [
        (429, {"Retry_After": "20"}, "rate_limited", 20.0),
        (429, {"retry_after_ms": "1500"}, "rate_limited", 1.5),
        (500, {}, "server_error", None),
        (503, {"Retry_After": "3"}, "server_error", 3.0),
    ],
)
def test_passing_failure_may_be_retried_after_what_the_server_asks(
    status: int, headers: dict[str, str], code: str, wait: float | None
) -> None:
    caught = failure(server_error(status, {"message": "busy"}, **headers))
    assert isinstance(caught, ComposeFailedForNow)
    assert (caught.code, caught.retry_after) == (code, wait)
    assert "busy" in str(caught)


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (lambda visit: stream(visit, event("The fer")), "cut_short"),
        (lambda visit: stream(visit, event("The"), b"data: {broken\n\n"), "cut_short"),
        (lambda visit: stream(visit, event("T"), b'data: {"error": "busy"}\n\n'), "server_error"),
        (lambda visit: stream(visit, b"data: [DONE]\n\n"), "empty_answer"),
        (lambda visit: visit.answer(b"<html>", kind="text/html"), "cut_short"),
        (lambda visit: visit.answer(b"{}", kind="application/json"), "empty_answer"),
        (lambda visit: visit.begin(kind="text/event-stream", Content_Length="900"), "cut_short"),
    ],
    ids=["no end", "broken event", "error event", "nothing", "html", "no message", "died"],
)  # fmt: skip
def test_answer_that_breaks_off_is_a_failure_for_now(
    page: Callable[[Visit], None], code: str
) -> None:
    caught = failure(page)
    assert isinstance(caught, ComposeFailedForNow)
    assert caught.code == code


def endless(visit: Visit) -> None:
    visit.begin(kind="text/event-stream")
    while not visit.outside.closing.is_set():
        visit.wfile.write(event("and more " * 50))


def endless_line(visit: Visit) -> None:
    visit.begin(kind="text/event-stream")
    while not visit.outside.closing.is_set():
        visit.wfile.write(b"data: " + b"x" * 10_000)


@pytest.mark.parametrize("page", [endless, endless_line])
def test_answer_without_measure_is_refused(page: Callable[[Visit], None]) -> None:
    assert failure(page).code == "answer_too_long"


def test_filtered_answer_is_refused() -> None:
    error = failure(lambda visit: stream(visit, event("The"), event(None, "content_filter")))
    assert error.code == "content_filtered"


def mute(visit: Visit) -> None:
    stream(visit, event("The ferry "))
    visit.outside.closing.wait(30)


def test_silent_model_is_stopped_by_the_wall_clock() -> None:
    with outside({PATH: mute}) as world, pytest.raises(ComposeFailedForNow) as caught:
        composer(world, timeout=0.5).compose("Text.", title="", max_sentences=3)
    assert caught.value.code == "timeout"


def test_stop_sign_ends_waiting_for_a_thinking_model() -> None:
    stop = threading.Event()
    pieces: list[str] = []
    ended: list[BaseException] = []

    def run(chat: ChatComposer) -> None:
        try:
            chat.compose("T.", title="", max_sentences=3, cancelled=stop, on_text=pieces.append)
        except PortCancelled as exc:
            ended.append(exc)

    with outside({PATH: mute}) as world:
        thread = threading.Thread(target=run, args=(composer(world),))
        thread.start()
        eventually(lambda: pieces)
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
    assert len(ended) == 1


def test_unreachable_server_may_be_retried() -> None:
    with outside({}) as gone:
        pass
    with pytest.raises(ComposeFailedForNow) as caught:
        composer(gone).compose("Text.", title="", max_sentences=3)
    assert caught.value.code == "connection_failed"


@pytest.mark.parametrize(
    "setting",
    [
        {"base_url": "localhost:8000", "model": "m"},
        {"base_url": "ftp://host/v1", "model": "m"},
        {"base_url": "http://host:x", "model": "m"},
        {"base_url": "http://host/v1", "model": " "},
        {"base_url": "http://host/v1", "model": "m", "api_key": "näh"},
    ],
)
def test_setting_that_cannot_work_is_named_at_once(setting: dict[str, str]) -> None:
    with pytest.raises(ComposeRefused) as caught:
        choose_composer(**setting)
    assert caught.value.code == "bad_setting"


def test_key_is_not_shown() -> None:
    chat = choose_composer(base_url="http://host/v1", model="m", api_key="sk-secret")
    assert "sk-secret" not in repr(chat)
