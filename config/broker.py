"""A Redis transport whose consumer outlives messages that nobody should have sent.

Guarantees: a message that is no JSON, no task message of the kind this project sends, or has a
broken body is set aside with one log line and a count, and the consumer goes on with the next one.
The plain transport would end the worker, and end it again after each restart; or lose a pool slot
for good. Leaves to others: well-formed messages with unknown tasks, which Celery itself rejects.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from kombu.transport import redis, virtual

log = logging.getLogger(__name__)

#: Characters of an unreadable message that its log line shows.
EXCERPT_CHARS = 200

_JSON = ("application/json", "utf-8")
#: Headers this project never uses; Celery trusts their shape blindly.
_UNUSED_HEADERS = ("eta", "group", "chord", "chain", "shadow", "stamps", "stamped_headers")


class StrictMessage(virtual.Message):
    """A message whose envelope has the shape kombu trusts blindly."""

    def __init__(self, payload: Any, channel: Any = None, **options: Any) -> None:
        properties = payload["properties"]
        if not isinstance(properties["delivery_tag"], str):
            raise ValueError("its delivery tag is no text")
        if not isinstance(properties["delivery_info"], dict):
            raise ValueError("its delivery info is no object")
        super().__init__(payload, channel=channel, **options)


class QuarantineChannel(redis.Channel):
    """A channel that reports messages it cannot use instead of raising into the event loop."""

    Message = StrictMessage

    #: How many messages this channel has set aside.
    set_aside: int = 0
    #: Set by kombu for each channel; such errors belong to the connection, not to a message.
    connection_errors: tuple[type[Exception], ...]

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[..., Any] | None,
        consumer_tag: str | None,
        **options: Any,
    ) -> Any:
        """Consume a queue; task messages (the ones that are acknowledged) are looked at first."""
        assert callback is not None, "consumers are given a callback"

        def guarded(message: Any) -> Any:
            flaw = None if no_ack else flaw_of(message)
            if flaw is None:
                try:
                    return callback(message)
                except self.connection_errors:
                    raise
                except Exception as error:  # noqa: BLE001 -- see below
                    # Whatever a message makes of the consumer, it must give its slot back.
                    flaw = f"{type(error).__name__}: {error}"
                    _release_slot(message)
            self._set_aside(flaw, message.body)
            if not no_ack:
                message.reject_log_error(log, self.connection_errors)
            return None

        return super().basic_consume(queue, no_ack, guarded, consumer_tag, **options)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            # The reply has been read and the message is off its list: nothing is left half done.
            self._set_aside(f"{type(error).__name__}: {error}", getattr(error, "doc", ""))
            return True

    def _set_aside(self, flaw: str, body: object) -> None:
        self.set_aside += 1
        log.warning(
            "message set aside",
            extra={
                "flaw": flaw[:EXCERPT_CHARS],
                "excerpt": repr(body)[:EXCERPT_CHARS],
                "set_aside": self.set_aside,
            },
        )


class QuarantineTransport(redis.Transport):
    """kombu's Redis transport with :class:`QuarantineChannel`."""

    Channel = QuarantineChannel


def flaw_of(message: Any) -> str | None:
    """Say what keeps a message from being one of this project's task messages, if anything."""
    headers = message.headers
    if not isinstance(headers, dict):
        return "no headers"
    if (message.content_type, message.content_encoding) != _JSON:
        return "not JSON in UTF-8"
    if not isinstance(headers.get("task"), str) or not isinstance(headers.get("id"), str):
        return "no task or no id"
    if any(headers.get(name) for name in _UNUSED_HEADERS):
        return "it uses a feature that is never used here"
    if headers.get("timelimit") not in (None, [None, None]):
        return "it sets a time limit"
    if headers.get("retries") not in (None, 0) or headers.get("compression"):
        return "it is a retry or compressed"
    if not isinstance(headers.get("expires"), str | None):
        return "its expiry is no time"
    return _flaw_of_body(message.body)


def _flaw_of_body(body: object) -> str | None:
    if not isinstance(body, str | bytes):
        return "no body"
    try:
        parts = json.loads(body)
    except (ValueError, RecursionError):
        return "its body is not JSON"
    if not isinstance(parts, list) or len(parts) != 3:
        return "its body is not arguments, options and embedded tasks"
    arguments, options, embedded = parts
    shapes = isinstance(arguments, list), isinstance(options, dict), isinstance(embedded, dict)
    if not all(shapes) or any(embedded.values()):
        return "its body is not arguments, options and embedded tasks"
    return None


def _release_slot(message: Any) -> None:
    """Forget a request that was counted against the pool before it failed to start."""
    from celery.worker import state

    for request in list(state.reserved_requests):
        if request.id == message.headers.get("id"):
            state.task_ready(request)
