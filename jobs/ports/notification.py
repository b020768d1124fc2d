"""The notification port: some bytes reach an address, or do not.

    NotifyRefused        (PortRefused)    gone, bad_url, ssrf_refused
    NotifyFailedForNow   (FailedForNow)   timeout, dns_failed, unknown_host, connection_failed,
                                          cut_short, bad_certificate, server_error, not_taken

Guarantees: the bytes arrive as given. Leaves to others: storing what became of it.
"""

from typing import Protocol

from jobs.ports.bounds import StopSign
from jobs.ports.errors import FailedForNow, PortRefused


class NotifyRefused(PortRefused):
    """The receiver is gone for good, or must not be contacted."""


class NotifyFailedForNow(FailedForNow):
    """The receiver did not take it this time."""


class Notifier(Protocol):
    """Who carries notifications."""

    def send(
        self,
        url: str,
        body: bytes,
        *,
        message_id: str,
        tenant: str,
        deadline: float | None = None,
        cancelled: StopSign | None = None,
    ) -> int:
        """Send one message; gives the receiver's HTTP status, which is a success.

        `deadline` is a `time.monotonic()` moment that shortens the sender's own timeout.
        Raises: NotifyRefused, NotifyFailedForNow, PortCancelled.
        On repeat: the receiver sees the same message again, under the same id.
        """
        ...
