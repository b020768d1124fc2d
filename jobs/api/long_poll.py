"""``Prefer: wait=N`` on one job: answer when something has happened, without holding a thread.

```
first look ─▶ news? ──yes──▶ answer
               │ no
               ▼
          sleep (asyncio) ─▶ look again … until news, the time is over, or the client is gone
```

Each look is one ordinary request to the application, so authentication, tenancy and errors are
those of any other call, and between two looks neither a thread nor a connection is held. News is
what differs from the client's ``If-None-Match``; without that header, the end of the job, which
the application shows by leaving out ``Retry-After``.

Guarantees: an answer comes after ``WAIT_SECONDS_MAX`` and one look at most; at most
``WAITING_MAX`` requests of this process wait, further ones are answered at once and say so by
leaving out ``Preference-Applied``. Leaves to others: the answer itself (``jobs.api.views``).
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from django.http import HttpRequest

#: Longest wait, seconds.
WAIT_SECONDS_MAX = 30
#: Requests of one process that may wait at once.
WAITING_MAX = 200
#: Pauses between looks, seconds; each is longer than the one before.
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.1, 1.0, 1.4

_ONE_JOB = re.compile(r"/api/v1/jobs/[^/]+")
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(?=$|[,;])", re.IGNORECASE)
_REPEATED = "baton.repeated_look"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]


class LongPoll:
    """ASGI middleware around the application."""

    def __init__(self, application: Application, *, waiting_max: int = WAITING_MAX) -> None:
        self.application = application
        self.waiting_max = waiting_max
        self._waiting = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        seconds = _wanted(scope)
        if seconds is None or self._waiting >= self.waiting_max:
            await self.application(scope, receive, send)
            return
        self._waiting += 1
        try:
            await self._wait(scope, receive, send, min(seconds, WAIT_SECONDS_MAX))
        finally:
            self._waiting -= 1

    async def _wait(self, scope: Message, receive: Receive, send: Send, seconds: int) -> None:
        gone = asyncio.ensure_future(_disconnect(receive))
        until, pause = time.monotonic() + seconds, _FIRST_PAUSE
        tagged = _header(scope["headers"], b"if-none-match") is not None
        look = scope
        try:
            while True:
                answer = await self._look(look, gone)
                left = until - time.monotonic()
                if gone.done() or left <= 0 or _is_news(answer, tagged=tagged):
                    break
                await asyncio.wait([gone], timeout=min(pause, left))
                pause = min(pause * _GROWTH, _LONGEST_PAUSE)
                look = {**scope, _REPEATED: True}
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        answer.headers.append((b"preference-applied", f"wait={seconds}".encode()))
        await answer.send(send)

    async def _look(self, scope: Message, gone: "asyncio.Future[None]") -> "_Answer":
        answer, begun = _Answer(), False

        async def receive() -> Message:
            nonlocal begun
            if not begun:
                begun = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await asyncio.wait([gone])
            return {"type": "http.disconnect"}

        # Each look has a scope of its own: applications keep things in it.
        await self.application(dict(scope), receive, answer.take)
        return answer


def is_repeated_look(request: HttpRequest) -> bool:
    """Tell whether this is a later look of a request that was let in already."""
    return bool(getattr(request, "scope", {}).get(_REPEATED))


class _Answer:
    """What the application answered to one look."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def send(self, send: Send) -> None:
        if not self.status:
            return  # the client left during the look
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


def _is_news(answer: _Answer, *, tagged: bool) -> bool:
    if answer.status == 304:
        # A job that is over will not change: there is nothing to wait for.
        return _header(answer.headers, b"retry-after") is None
    live = answer.status == 200 and _header(answer.headers, b"retry-after") is not None
    return tagged or not live


def _wanted(scope: Message) -> int | None:
    """Return the seconds a request asks to wait; None when it is not ours to delay."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    preferences = _header(scope["headers"], b"prefer")
    if preferences is None or not _ONE_JOB.fullmatch(scope["path"]):
        return None
    found = _WAIT.search(preferences.decode("latin-1"))
    return int(found[1]) if found else None


def _header(headers: Any, name: bytes) -> bytes | None:
    values = [value for key, value in headers if key.lower() == name]
    return b", ".join(values) if values else None


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        """Skip the body; a GET's means nothing."""
