"""One HTTP call to a speech provider, bounded, with its failures named.

Guarantees: a JSON object or a typed failure comes back, whatever the other side does; the key
appears in no message. Leaves to others: what statuses and objects mean (`client`, `openai`).
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from jobs.ports.bounds import Bounds, OutOfTime
from jobs.ports.errors import SpeechFailedForNow, SpeechRefused
from jobs.ports.retry_after import retry_after
from jobs.ports.wire import DnsFailed, bounded_client

MAX_ANSWER_BYTES = 4 * 1024 * 1024
_BUSY = frozenset({408, 409, 425, 429})
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status that is no failure, and the object that came with it."""

    status: int
    body: dict[str, Any]


def check_base_url(url: str, *, what: str) -> str:
    """Return the base URL without its last slash. Raises: SpeechRefused, code bad_setting."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise SpeechRefused(f"The {what} cannot be read: {exc}.", code="bad_setting") from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SpeechRefused(f"The {what} must look like https://host/v1.", code="bad_setting")
    return url.rstrip("/")


def ask(
    method: str,
    url: str,
    *,
    bounds: Bounds,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    expected: frozenset[int] = frozenset(),
) -> Answer:
    """Make one call; statuses of `expected` are handed back beside 2xx.

    Raises: SpeechRefused (unauthorized, quota_exhausted, rejected, unsupported_format, too_large),
    SpeechFailedForNow, PortCancelled.
    """
    with _failures_named(), bounded_client(bounds, headers=dict(headers or {})) as client:
        bounds.check()
        request = client.build_request(method, url, content=content)
        response = client.send(request, stream=True)
        try:
            raw = bytearray()
            for chunk in response.iter_raw():
                raw += chunk
                if len(raw) > MAX_ANSWER_BYTES:
                    raise SpeechRefused(
                        "The speech provider's answer is beyond all measure.", code="rejected"
                    )
            return _judged(response, bytes(raw), expected)
        finally:
            response.close()


def _judged(response: httpx.Response, raw: bytes, expected: frozenset[int]) -> Answer:
    status = response.status_code
    body = _object(raw)
    if 200 <= status < 300 or status in expected:
        if body is None:
            raise SpeechFailedForNow(
                f"The speech provider sent something unreadable: {raw[:_SHOWN_CHARS]!r}.",
                code="cut_short",
            )
        return Answer(status=status, body=body)
    said = _said(body or {})
    if status in _BUSY or status >= 500:
        raise SpeechFailedForNow(
            f"The speech provider answered {status}{said}.",
            code="server_error" if status >= 500 else "rate_limited",
            retry_after=retry_after(response.headers),
        )
    code = {
        401: "unauthorized", 403: "unauthorized", 402: "quota_exhausted",
        413: "too_large", 415: "unsupported_format", 422: "unsupported_format",
    }.get(status, "rejected")  # fmt: skip
    raise SpeechRefused(f"The speech provider refused the call ({status}){said}.", code=code)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _said(body: dict[str, Any]) -> str:
    error = body.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    return f": {error[:_SHOWN_CHARS].rstrip('.')}" if isinstance(error, str) and error else ""


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    except OutOfTime as exc:
        raise SpeechFailedForNow(
            "The speech provider did not answer within its time.", code="timeout"
        ) from exc
    except DnsFailed as exc:
        raise SpeechFailedForNow(
            f"The speech provider's host {exc.host!r} could not be looked up.", code="dns_failed"
        ) from exc
    except httpcore.RemoteProtocolError as exc:
        raise SpeechFailedForNow(
            f"The speech provider's answer broke off ({exc}).", code="cut_short"
        ) from exc
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as exc:
        raise SpeechFailedForNow(
            f"The speech provider could not be reached ({exc or type(exc).__name__}).",
            code="connection_failed",
        ) from exc
