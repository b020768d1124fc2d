"""The page port: a web address becomes readable text.

Guarantees: `Page.text` is never empty. Leaves to others: storing it, and what it is for.
"""

from dataclasses import dataclass
from typing import Protocol

from jobs.ports.bounds import StopSign


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page's readable part and where it came from."""

    #: The address asked for, and the one that answered after redirects (no fragment).
    url: str
    final_url: str
    title: str
    #: Main text, one paragraph a line, without navigation and boilerplate.
    text: str
    #: What the page says of its language ("en", "pt-br"); None when it says nothing.
    language: str | None
    #: Size of the document after decompression, bytes.
    byte_count: int
    #: Media type without parameters, such as "text/html".
    content_type: str
    #: The encoding the bytes were read with, which may differ from the one declared.
    charset: str


class PageSource(Protocol):
    """Where pages come from."""

    def fetch(
        self, url: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> Page:
        """Fetch one page and extract its text; reads only.

        `deadline` is a `time.monotonic()` moment that shortens the source's own timeout.
        Raises: FetchRefused, FetchFailedForNow, PortCancelled.
        On repeat: asks the site again.
        """
        ...
