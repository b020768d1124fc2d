"""What an OpenAI-compatible server's answers mean.

Guarantees: a stream counts as finished only when the server says so (`[DONE]` or a finish reason);
refusals and failures become the port's errors, with the server's own words cut short.
Leaves to others: sending, collecting, time.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx

from jobs.composing.sse import read_events
from jobs.ports.errors import ComposeFailedForNow, ComposeRefused
from jobs.ports.retry_after import retry_after

MAX_BODY_BYTES = 1_000_000
_SHOWN_CHARS = 200
_BUSY = frozenset({408, 409, 425, 429})
_UNPAID = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


def check_answer(response: httpx.Response) -> None:
    """Pass a success; a redirect is a wrong base URL.

    Raises: ComposeRefused (unauthorized, quota_exhausted, rejected, bad_setting),
    ComposeFailedForNow (rate_limited, server_error).
    """
    status = response.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise ComposeRefused(
            f"The model's base URL redirects ({status}); set the address it leads to.",
            code="bad_setting",
        )
    error = _error_of(_body(response))
    said = _said(error)
    if status == 402 or error.get("code") in _UNPAID or error.get("type") in _UNPAID:
        raise ComposeRefused(f"The model's account is used up{said}.", code="quota_exhausted")
    if status in _BUSY or status >= 500:
        raise ComposeFailedForNow(
            f"The model's server answered {status}{said}.",
            code="server_error" if status >= 500 else "rate_limited",
            retry_after=retry_after(response.headers),
        )
    if status in (401, 403):
        raise ComposeRefused(
            f"The model's server does not accept the key ({status}){said}.", code="unauthorized"
        )
    raise ComposeRefused(
        f"The model's server rejects the request ({status}){said}.", code="rejected"
    )


def pieces_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of a streamed answer piece by piece, up to its end.

    Raises: ComposeFailedForNow (cut_short, server_error), ComposeRefused (content_filtered).
    """
    finished = False
    for data in read_events(chunks):
        if data.strip() == "[DONE]":
            return
        event = _json(data)
        if error := _error_of(event):
            raise ComposeFailedForNow(
                f"The model's server failed while answering{_said(error)}.", code="server_error"
            )
        choice = _first_choice(event)
        text = _dict(choice.get("delta")).get("content")
        if isinstance(text, str) and text:
            yield text
        finished = _is_finished(choice) or finished
    if not finished:
        raise ComposeFailedForNow("The model's answer broke off before its end.", code="cut_short")


def parse_message(response: httpx.Response) -> str:
    """Read the text of an answer that was not streamed.

    Raises: ComposeFailedForNow (cut_short, empty_answer), ComposeRefused (content_filtered).
    """
    choice = _first_choice(_json(_body(response).decode("utf-8", errors="replace")))
    _is_finished(choice)
    text = _dict(choice.get("message")).get("content")
    if not isinstance(text, str):
        raise ComposeFailedForNow("The model answered without a message.", code="empty_answer")
    return text


def _is_finished(choice: dict[str, Any]) -> bool:
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise ComposeRefused("The model will not summarise this text.", code="content_filtered")
    return reason is not None


def _body(response: httpx.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            break
    return bytes(body)


def _json(data: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(data))
    except (ValueError, RecursionError) as exc:
        raise ComposeFailedForNow(
            f"The model's server sent something unreadable: {data[:_SHOWN_CHARS]!r}.",
            code="cut_short",
        ) from exc


def _error_of(event: dict[str, Any] | bytes) -> dict[str, Any]:
    """Give the error object of a body or event, in either of the shapes servers use."""
    if isinstance(event, bytes):
        try:
            event = _dict(json.loads(event))
        except (ValueError, RecursionError):
            return {}
    error = event.get("error")
    return {"message": error} if isinstance(error, str) else _dict(error)


def _said(error: dict[str, Any]) -> str:
    message = error.get("message")
    return f": {message[:_SHOWN_CHARS]}" if isinstance(message, str) and message else ""


def _first_choice(event: dict[str, Any]) -> dict[str, Any]:
    choices = event.get("choices")
    return _dict(choices[0]) if isinstance(choices, list) and choices else {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
