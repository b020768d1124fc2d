"""The recording port: a web address becomes the bytes of a sound file.

Guarantees: `Recording.content` is never empty. Leaves to others: storing it, and whether anybody
can read the format (the speech provider says so).
"""

from dataclasses import dataclass
from typing import Protocol

from jobs.ports.bounds import StopSign


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A sound file and where it came from."""

    #: The address that answered after redirects (no fragment).
    final_url: str
    content: bytes
    #: Media type without parameters, as the site named it; empty when it named none.
    content_type: str


class RecordingSource(Protocol):
    """Where recordings come from."""

    def fetch(
        self, url: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> Recording:
        """Fetch one recording; reads only.

        `deadline` is a `time.monotonic()` moment that shortens the source's own timeout.
        Raises: FetchRefused, FetchFailedForNow, PortCancelled. On repeat: asks the site again.
        """
        ...
