"""A Redis transport whose consumer outlives messages that nobody can read.

Guarantees: a message that is no JSON, no message, or has a broken body is set aside with one log line
and a count, and the consumer goes on with the next one; the plain transport would end the worker, and
end it again after each restart. Leaves to others: readable messages with unknown tasks or foreign
content types, which Celery itself rejects.
"""

import logging
from typing import Any

from kombu.transport import redis

log = logging.getLogger(__name__)

#: Characters of an unreadable message that its log line shows.
EXCERPT_CHARS = 200


class QuarantineChannel(redis.Channel):
    """A channel that reports unreadable messages instead of raising them into the event loop."""

    #: How many messages this channel has set aside.
    set_aside: int = 0

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            # The reply has been read and the message is off its list: nothing is left half done.
            self._set_aside(error)
            return True

    def _get(self, queue: str) -> Any:
        while True:
            try:
                return super()._get(queue)
            except (ValueError, TypeError, RecursionError) as error:
                self._set_aside(error)

    def _set_aside(self, error: Exception) -> None:
        self.set_aside += 1
        log.warning(
            "unreadable message set aside",
            extra={
                "reason": f"{type(error).__name__}: {error}"[:EXCERPT_CHARS],
                "excerpt": str(getattr(error, "doc", ""))[:EXCERPT_CHARS],
                "set_aside": self.set_aside,
            },
        )


class QuarantineTransport(redis.Transport):
    """kombu's Redis transport with :class:`QuarantineChannel`."""

    Channel = QuarantineChannel
