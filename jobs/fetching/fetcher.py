"""Fetch one page: the hops (`hops`), then type, body and text, everything bounded.

Guarantees: one wall clock over all of it; a stop sign is obeyed between chunks and while waiting.
Failures that another attempt may cure are `FetchFailedForNow`, all others `FetchRefused`.
Leaves to others: retries, permits, storing.
"""

import re
from dataclasses import dataclass, field
from functools import partial

import httpx

from jobs.fetching.body import ACCEPT_ENCODING, read_body, too_large
from jobs.fetching.decoding import decode
from jobs.fetching.extraction import MAX_TITLE_CHARS, extract_html, extract_plain
from jobs.fetching.hops import Hops, failures_named
from jobs.ports.bounds import Bounds, StopSign, within
from jobs.ports.errors import FetchRefused
from jobs.ports.pages import Page
from jobs.ports.wire import Resolver, system_resolver

USER_AGENT = "Baton/0.1 (content fetcher)"

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_PLAIN_TYPES = ("text/plain",)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s;\"',]{1,60})", re.IGNORECASE)
#: How well-known binary formats begin; servers send them as text/html more often than one thinks.
_BINARY_STARTS = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"ID3",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFetcher:
    """The page source for the public web; stateless, safe to share between threads."""

    #: Also allow loopback and private addresses: an explicit setting for demos and intranets.
    allow_private: bool = False
    #: Largest body taken, before and after decompression.
    max_bytes: int = 5 * 1024 * 1024
    #: Seconds for the whole fetch, redirects included, by the wall clock.
    timeout: float = 20.0
    max_redirects: int = 5
    user_agent: str = USER_AGENT
    #: How names become addresses; tests put their own here.
    resolver: Resolver = field(default=system_resolver, repr=False)

    def fetch(
        self, url: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> Page:
        """Fetch one page and extract its text; reads only.

        `deadline` is a `time.monotonic()` moment that shortens `timeout`.
        Raises: FetchRefused, FetchFailedForNow, PortCancelled. On repeat: asks the site again.
        """
        bounds = Bounds.of(timeout=self.timeout, deadline=deadline, cancelled=cancelled)
        hops = Hops(
            headers={
                "User-Agent": self.user_agent,
                "Accept": "text/html,application/xhtml+xml,text/plain;q=0.8",
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            allow_private=self.allow_private,
            max_redirects=self.max_redirects,
            resolver=self.resolver,
        )
        with failures_named(self.timeout), hops.follow(url, bounds) as response:
            return self._page(url, response, bounds)

    def _page(self, url: str, response: httpx.Response, bounds: Bounds) -> Page:
        declared = response.headers.get("content-type", "")
        kind = declared.partition(";")[0].strip().lower()
        if kind and kind not in _HTML_TYPES + _PLAIN_TYPES:
            raise _unsupported(f"it is sent as {kind[:80]!r}")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.max_bytes:
            raise too_large(self.max_bytes)
        raw = read_body(
            response.iter_raw(),
            encoding=response.headers.get("content-encoding", ""),
            limit=self.max_bytes,
        )
        if raw.startswith(_BINARY_STARTS):
            raise _unsupported("its content is binary")
        if not kind:
            kind = "text/html" if raw.lstrip()[:1] == b"<" else "text/plain"
        label = _CHARSET.search(declared)
        markup = kind in _HTML_TYPES
        text, charset = decode(raw, label=label[1] if label else None, markup=markup)
        if "\0" in text:
            raise _unsupported("its content is binary")
        final_url = str(response.url)
        extractor = partial(extract_html if markup else extract_plain, text, url=final_url)
        # A parser knows no clock, and markup can be written to keep it busy.
        extract = within(bounds, extractor)
        return Page(
            url=url,
            final_url=final_url,
            title=extract.title[:MAX_TITLE_CHARS],
            text=extract.text,
            language=extract.language or _language(response),
            byte_count=len(raw),
            content_type=kind,
            charset=charset,
        )


def _language(response: httpx.Response) -> str | None:
    found = response.headers.get("content-language", "").partition(",")[0].strip().lower()
    return found if re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{1,8})*", found) else None


def _unsupported(why: str) -> FetchRefused:
    return FetchRefused(
        f"Only HTML and plain text pages can be read, and {why}.", code="unsupported_type"
    )
