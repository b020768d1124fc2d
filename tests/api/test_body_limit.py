"""Bodies of any size, declared, undeclared or endless, at the ASGI door."""

import asyncio
import json
from typing import Any

from jobs.api.body_limit import BodyLimit

LIMIT = 100


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Read the whole body as Django does, and answer with its length."""
    total = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        total += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(total).encode()})


def ask(chunks: list[bytes], declared: int | None = None) -> tuple[int, bytes, int]:
    """Return status, body and how many chunks were read."""
    sent: list[dict[str, Any]] = []
    left = list(chunks)

    async def receive() -> dict[str, Any]:
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    scope = {"type": "http", "path": "/api/v1/jobs", "headers": headers}
    asyncio.run(BodyLimit(echo, limit_bytes=LIMIT)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], len(chunks) - len(left)


def test_a_body_up_to_the_limit_passes() -> None:
    assert ask([b"a" * LIMIT], LIMIT) == (200, b"100", 1)
    assert ask([b"a" * 50, b"a" * 50]) == (200, b"100", 2)
    assert ask([b""]) == (200, b"0", 1)


def test_a_declared_excess_is_refused_unread() -> None:
    status, body, read = ask([b"a"], LIMIT + 1)
    assert (status, read) == (413, 0)
    assert json.loads(body)["type"] == "/problems/too-large"


def test_an_undeclared_excess_is_refused_as_soon_as_it_shows() -> None:
    status, _, read = ask([b"a" * 60] * 1000)
    assert (status, read) == (413, 2)


def test_other_protocols_pass_untouched() -> None:
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BodyLimit(application)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
