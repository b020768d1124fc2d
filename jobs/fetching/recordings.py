"""Fetch one recording: the same hops and guard as a page, and a body that is kept as it is.

Guarantees: at most `max_bytes` are read; what is plainly no sound (a web page, an image) is refused
here, with its name. Leaves to others: reading the sound.
"""

from dataclasses import dataclass, field

import httpx

from jobs.fetching.body import read_body, too_large
from jobs.fetching.fetcher import USER_AGENT
from jobs.fetching.hops import Hops, failures_named
from jobs.ports.bounds import Bounds, StopSign
from jobs.ports.errors import FetchRefused
from jobs.ports.recordings import Recording
from jobs.ports.wire import Resolver, system_resolver

#: First parts of media types that are never a recording.
_NO_SOUND = ("text/", "image/", "font/", "application/json", "application/xhtml", "application/pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFetcher:
    """The recording source for the public web; stateless, safe to share between threads."""

    #: Also allow loopback and private addresses: an explicit setting for demos and intranets.
    allow_private: bool = False
    #: Largest file taken: about eight minutes of 16 kHz mono.
    max_bytes: int = 16 * 1024 * 1024
    #: Seconds for the whole fetch, redirects included, by the wall clock.
    timeout: float = 90.0
    resolver: Resolver = field(default=system_resolver, repr=False)

    def fetch(
        self, url: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> Recording:
        """Fetch one recording; reads only.

        Raises: FetchRefused, FetchFailedForNow, PortCancelled. On repeat: asks the site again.
        """
        bounds = Bounds.of(timeout=self.timeout, deadline=deadline, cancelled=cancelled)
        hops = Hops(
            headers={
                "User-Agent": USER_AGENT,
                "Accept": "audio/wav,audio/*;q=0.9",
                "Accept-Encoding": "identity",
            },
            allow_private=self.allow_private,
            resolver=self.resolver,
        )
        with failures_named(self.timeout), hops.follow(url, bounds) as response:
            return self._recording(response)

    def _recording(self, response: httpx.Response) -> Recording:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind.startswith(_NO_SOUND):
            raise FetchRefused(
                f"A recording is needed, and this is sent as {kind[:80]!r}.",
                code="unsupported_type",
            )
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.max_bytes:
            raise too_large(self.max_bytes)
        content = read_body(
            response.iter_raw(),
            encoding=response.headers.get("content-encoding", ""),
            limit=self.max_bytes,
        )
        if not content:
            raise FetchRefused("The recording is empty.", code="no_audio")
        return Recording(final_url=str(response.url), content=content, content_type=kind)
