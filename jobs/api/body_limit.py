"""Stop bodies that are far too large before they fill memory or disk.

Guarantees: no request makes this process keep more than the limit; a client that declares or sends
more gets 413 as problem+json. Leaves to others: the finer limit of API bodies (``parsers``).
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from jobs.api.problems import JSON_MEDIA_TYPE, PROBLEMS

#: Largest body any address of this server reads, bytes.
SERVER_BODY_BYTES = 1024 * 1024

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]


class BodyLimit:
    """ASGI middleware around the whole application."""

    def __init__(self, application: Application, *, limit_bytes: int = SERVER_BODY_BYTES) -> None:
        self.application = application
        self.limit_bytes = limit_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request; a body over the limit is answered here."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        if _declared(scope) > self.limit_bytes:
            await _refuse(scope, send, self.limit_bytes)
            return
        seen = 0
        over = started = False

        async def limited_receive() -> Message:
            nonlocal seen, over
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limit_bytes:
                # For the application the client is gone: it stops reading and answers nothing.
                over = True
                return {"type": "http.disconnect"}
            return message

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        await self.application(scope, limited_receive, watched_send)
        if over and not started:
            await _refuse(scope, send, self.limit_bytes)


def _declared(scope: Message) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and len(value) <= 20:
            return int(value)
    return 0


async def _refuse(scope: Message, send: Send, limit_bytes: int) -> None:
    kind = PROBLEMS["too-large"]
    body = json.dumps(
        {
            "type": f"/problems/{kind.slug}",
            "title": kind.title,
            "status": kind.status,
            "detail": f"No address here takes more than {limit_bytes} bytes.",
            "instance": scope["path"],
            "request_id": "",
            "retryable": kind.retryable,
            "limit_bytes": limit_bytes,
        }
    ).encode()
    headers = [
        (b"content-type", JSON_MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": kind.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
