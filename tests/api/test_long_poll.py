"""`Prefer: wait=N`: answers come with the news, in time, and hold nothing while they wait."""

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from jobs.api.long_poll import WAIT_SECONDS_MAX, LongPoll
from jobs.models import TenantBucket
from tests.api.callers import ARTICLE, Caller
from tests.api.serving import Server
from tests.kit.waiting import never


@pytest.fixture
def job(acme: Caller, server: Server) -> str:
    """The address of a job that nobody works on."""
    with server.client(acme.token) as client:
        address: str = client.post("/api/v1/jobs", json=ARTICLE).json()["links"]["self"]
    return address


def get(server: Server, token: str, address: str, **headers: str) -> httpx.Response:
    with server.client(token) as client:
        return client.get(address, headers={k.replace("_", "-"): v for k, v in headers.items()})


def test_an_answer_comes_as_soon_as_the_job_is_over(acme: Caller, server: Server, job: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(get, server, acme.token, job, Prefer="wait=20") for _ in range(3)]
        never(lambda: any(wait.done() for wait in waits), during=0.5)
        begun = time.monotonic()
        with server.client(acme.token) as client:
            assert client.post(f"{job}/cancel").status_code == 202
        answers = [wait.result(30) for wait in waits]
        assert time.monotonic() - begun < 5
    for answer in answers:
        assert answer.json()["status"] == "canceled"
        assert answer.headers["Preference-Applied"] == "wait=20"
        assert "Retry-After" not in answer.headers
    # There is nothing to wait for any more.
    for headers in ({}, {"If_None_Match": answers[0].headers["ETag"]}):
        begun = time.monotonic()
        again = get(server, acme.token, job, Prefer="wait=20", **headers)
        assert time.monotonic() - begun < 5
        assert again.status_code == (304 if headers else 200)


def test_without_news_the_answer_comes_when_the_time_is_over(
    acme: Caller, server: Server, job: str
) -> None:
    plain = get(server, acme.token, job)
    assert plain.headers["Retry-After"] == "2"
    assert "Preference-Applied" not in plain.headers
    begun = time.monotonic()
    answer = get(server, acme.token, job, Prefer="respond-async, wait=1")
    assert 1 <= time.monotonic() - begun < 5
    assert (answer.status_code, answer.json()["status"]) == (200, "initial")
    assert answer.headers["Preference-Applied"] == "wait=1"
    tag = answer.headers["ETag"]
    unchanged = get(server, acme.token, job, Prefer="wait=1", If_None_Match=tag)
    assert (unchanged.status_code, unchanged.headers["ETag"]) == (304, tag)


def test_with_a_tag_any_change_is_news(acme: Caller, server: Server, job: str) -> None:
    tag = get(server, acme.token, job).headers["ETag"]
    stale = get(server, acme.token, job, Prefer="wait=20", If_None_Match='"older"')
    assert (stale.status_code, stale.headers["ETag"]) == (200, tag)


@pytest.mark.parametrize("prefer", ["wait", "wait=", "wait=x", "wait=-1", "wait=1e3", "await=9"])
def test_a_preference_that_means_nothing_is_ignored(
    acme: Caller, server: Server, job: str, prefer: str
) -> None:
    begun = time.monotonic()
    answer = get(server, acme.token, job, Prefer=prefer)
    assert answer.status_code == 200
    assert "Preference-Applied" not in answer.headers
    assert time.monotonic() - begun < 5


def test_a_stranger_does_not_wait(acme: Caller, globex: Caller, server: Server, job: str) -> None:
    begun = time.monotonic()
    assert get(server, globex.token, job, Prefer="wait=20").status_code == 404
    assert get(server, "nobody", job, Prefer="wait=20").status_code == 401
    assert time.monotonic() - begun < 5


def test_many_wait_while_others_are_served(acme: Caller, server: Server, job: str) -> None:
    with ThreadPoolExecutor(40) as pool:
        waits: list[Future[httpx.Response]] = [
            pool.submit(get, server, acme.token, job, Prefer="wait=30") for _ in range(40)
        ]
        never(lambda: any(wait.done() for wait in waits), during=0.5)
        for _ in range(3):
            assert get(server, acme.token, "/api/v1/jobs").status_code == 200
        calls = TenantBucket.objects.get(tenant="acme").full_at
        never(lambda: any(wait.done() for wait in waits), during=1)
        # Looking again is not another call.
        assert TenantBucket.objects.get(tenant="acme").full_at == calls
        assert get(server, acme.token, f"{job}").status_code == 200
        with server.client(acme.token) as client:
            client.post(f"{job}/cancel")
        assert {wait.result(30).json()["status"] for wait in waits} == {"canceled"}


class _Application:
    """Answers each look with the next of its statuses, then with the last one for ever."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.looks = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.looks += 1
        assert (await receive())["body"] == b""
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        headers = [(b"retry-after", b"2")] if status == 200 else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"x"})


def _scope(prefer: bytes = b"wait=20") -> dict[str, Any]:
    headers = [(b"prefer", prefer)]
    return {"type": "http", "method": "GET", "path": "/api/v1/jobs/job_1", "headers": headers}


async def _silence() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


def test_an_error_ends_the_wait() -> None:
    application, sent = _Application(200, 200, 503), []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(LongPoll(application)(_scope(), _silence, send))
    assert (application.looks, sent[0]["status"]) == (3, 503)


def test_a_client_that_leaves_is_not_waited_for() -> None:
    application = _Application(200)
    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await asyncio.sleep(0.2)
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        """Nobody listens."""

    begun = time.monotonic()
    asyncio.run(LongPoll(application)(_scope(), receive, send))
    assert time.monotonic() - begun < 5


def test_beyond_the_limit_of_waiting_requests_the_answer_comes_at_once() -> None:
    application, sent = _Application(200), []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = _scope()
    scope["headers"] = [*scope["headers"]]

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(LongPoll(application, waiting_max=0)(scope, receive, send))
    assert application.looks == 1
    assert (b"preference-applied", b"wait=20") not in sent[0]["headers"]


def test_a_longer_wait_is_cut() -> None:
    applied: list[Any] = []

    async def send(message: Any) -> None:
        applied.extend(message.get("headers", []))

    asyncio.run(LongPoll(_Application(404))(_scope(b"wait=999999999"), _silence, send))
    assert (b"preference-applied", f"wait={WAIT_SECONDS_MAX}".encode()) in applied
