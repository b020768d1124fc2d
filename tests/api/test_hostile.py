"""Whatever bytes arrive on the socket: an answer below 500 or a closed connection."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from jobs.api.body_limit import SERVER_BODY_BYTES
from jobs.models import ContentJob
from tests.api.callers import ARTICLE, Caller
from tests.api.serving import Server
from tests.kit.waiting import eventually, never

BODY = json.dumps(ARTICLE).encode()


def exchange(server: Server, raw: bytes, *, timeout: float = 30) -> bytes:
    """Send bytes and read until the server closes or has answered."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=timeout) as peer:
        try:
            peer.sendall(raw)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough
        received = b""
        try:
            while chunk := peer.recv(65_536):
                received += chunk
        except ConnectionResetError:
            pass
        return received


def status_of(answer: bytes) -> int:
    """Return the status of an answer; 0 for a connection that was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def request(
    acme: Caller, body: bytes = BODY, *, line: bytes = b"POST /api/v1/jobs", **headers: bytes
) -> bytes:
    """Write a request; a header given as empty is left out."""
    fields = {
        b"Host": b"localhost",
        b"Authorization": b"Bearer " + acme.token.encode(),
        b"Content-Type": b"application/json",
        b"Content-Length": str(len(body)).encode(),
        b"Connection": b"close",
    }
    fields |= {name.replace("_", "-").encode(): value for name, value in headers.items()}
    lines = [name + b": " + value for name, value in fields.items() if value]
    return line + b" HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body


def hostile(acme: Caller) -> dict[str, bytes]:
    """Return requests no client should send."""
    chunked = {"Content_Length": b"", "Transfer_Encoding": b"chunked"}
    return {
        "nothing": b"\r\n\r\n",
        "no protocol": b"hello\r\n\r\n",
        "tls": bytes.fromhex("1603010200010001fc0303") + b"\x00" * 200,
        "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "method": request(acme, line=b"BREW /api/v1/jobs"),
        "lower method": request(acme, line=b"post /api/v1/jobs"),
        "long path": request(acme, line=b"GET /api/v1/jobs/" + b"a" * 60_000),
        "raw bytes in path": request(acme, line=b"GET /api/v1/jobs/\xff\xfe"),
        "percent garbage": request(acme, line=b"GET /api/v1/jobs/%zz%00%ff%f0%28"),
        "query garbage": request(acme, line=b"GET /api/v1/jobs?limit=%ff&cursor=%00&&=&%"),
        "many parameters": request(acme, line=b"GET /api/v1/jobs?" + b"a=1&" * 5000),
        "absolute target": request(acme, line=b"GET http://evil.example/api/v1/jobs"),
        "no host": request(acme, Host=b""),
        "foreign host": request(acme, Host=b"evil.example"),
        "broken host": request(acme, Host=b"[::1"),
        "host of bytes": request(acme, Host=b"\xff\xfe"),
        "big header": request(acme, X_Big=b"a" * 200_000),
        "header bytes": request(acme, Idempotency_Key=b"\xff" * 20, Accept=b"\xff", Prefer=b"\xfe"),
        "authorization bytes": request(acme, Authorization=b"Bearer \xff\xfe"),
        "accept garbage": request(acme, Accept=b";;;q=,*/*;q=x,a"),
        "etag garbage": request(acme, line=b"GET /api/v1/jobs/job_1", If_None_Match=b'W/"\xff,,"'),
        "wait garbage": request(acme, line=b"GET /api/v1/jobs/job_1", Prefer=b"wait=9999999999999"),
        "utf-16": request(acme, BODY.decode().encode("utf-16")),
        "latin-1": request(acme, b'{"kind": "article", "source_url": "http://\xe9/"}'),
        "charset": request(acme, Content_Type=b"application/json; charset=utf-7"),
        "charset unknown": request(acme, Content_Type=b"application/json; charset=nonsense"),
        "charset bytes": request(acme, Content_Type=b"application/json; charset=\xff"),
        "type garbage": request(acme, Content_Type=b";;=/\xff"),
        "multipart": request(acme, b"--x\r\n\r\n", Content_Type=b"multipart/form-data; boundary=x"),
        "gzip": request(acme, b"\x1f\x8b\x08", Content_Encoding=b"gzip"),
        "body shorter": request(acme, Content_Length=b"5000"),
        "body longer": request(acme, Content_Length=b"3"),
        "negative length": request(acme, Content_Length=b"-1"),
        "length of letters": request(acme, Content_Length=b"abc"),
        "length of digits": request(acme, Content_Length=b"9" * 40),
        "large": request(acme, b'{"x": "' + b"a" * (SERVER_BODY_BYTES + 1) + b'"}'),
        "bad chunk": request(acme, b"zz\r\nabc\r\n", **chunked),
        "endless chunk": request(acme, b"fffffff\r\n" + b"a" * 2_000_000, **chunked),
        "deep": request(acme, b'{"metadata":' * 20_000 + b"1" + b"}" * 20_000),
        "huge number": request(acme, b'{"metadata": {"n": ' + b"9" * 100_000 + b"}}"),
        "expect": request(acme, Expect=b"something-odd"),
        "upgrade": request(acme, Connection=b"Upgrade", Upgrade=b"websocket"),
        "override": request(acme, b"{}", X_HTTP_Method_Override=b"DELETE"),
    }


def test_no_bytes_make_the_server_fail(acme: Caller, server: Server) -> None:
    requests = hostile(acme)
    with ThreadPoolExecutor(8) as pool:
        answers = dict(
            zip(
                requests,
                pool.map(lambda raw: exchange(server, raw), requests.values()),
                strict=True,
            )
        )
    failed = {name: answer[:300] for name, answer in answers.items() if status_of(answer) >= 500}
    assert failed == {}
    told = [name for name, answer in answers.items() if b"Traceback" in answer]
    assert told == []
    assert "Traceback" not in server.said, server.said
    assert "Exception in ASGI application" not in server.said, server.said
    with server.client(acme.token) as client:
        assert client.post("/api/v1/jobs", json=ARTICLE).status_code == 202


def test_a_refused_host_is_one_line_in_the_log_and_no_stack(acme: Caller, server: Server) -> None:
    with server.client(acme.token) as client:
        assert client.get("/api/v1/jobs", headers={"Host": "evil.example"}).status_code == 400
    eventually(lambda: "evil.example" in server.said)
    [told] = [line for line in server.said.splitlines() if "evil.example" in line]
    assert "Traceback" not in told


def test_a_slow_client_delays_nobody_and_a_vanished_one_leaves_nothing(
    acme: Caller, server: Server
) -> None:
    address = urlsplit(server.url)
    raw = request(acme)
    slow = [socket.create_connection((address.hostname, address.port)) for _ in range(20)]
    try:
        for peer in slow:
            peer.sendall(raw[:-20])
        with server.client(acme.token) as client:
            for _ in range(3):
                begun = time.monotonic()
                assert client.get("/api/v1/jobs").status_code == 200
                assert time.monotonic() - begun < 5
        never(ContentJob.objects.exists, during=0.3)
        slow[0].sendall(raw[-20:])
        slow[0].settimeout(30)
        assert status_of(slow[0].recv(65_536)) == 202
    finally:
        for peer in slow:
            peer.close()
    with server.client(acme.token) as client:
        assert len(client.get("/api/v1/jobs").json()["results"]) == 1
    assert "Traceback" not in server.said, server.said


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_route_takes_every_method_without_failing(acme: Caller, method: str) -> None:
    from jobs.api.urls import urlpatterns

    for route in urlpatterns:
        path = str(route.pattern).replace("<str:job_id>", "job_1")
        for raw in (b"", b"{}", b"[]", b"\xff"):
            answer: Any = acme.call(method, path, raw)
            assert answer.status_code < 500, (path, raw, answer.content)
