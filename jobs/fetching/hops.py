"""Follow one address to the answer behind it: hop by hop, each hop checked, everything bounded.

```
check URL ─▶ connect (resolve once, vet, connect to the vetted address) ─▶ status?
   ▲                                                        │ redirect, at most max_redirects
   └────────────────────────────────────────────────────────┘ 2xx ─▶ the open response
```

Guarantees: one wall clock and one stop sign over all hops; no hop reaches an address the guard
refuses. Leaves to others: what the body is (`fetcher`, `recordings`).
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpcore
import httpx

from jobs.fetching.guard import Guard
from jobs.fetching.statuses import check_status
from jobs.ports.bounds import Bounds, OutOfTime
from jobs.ports.errors import FetchFailedForNow, FetchRefused
from jobs.ports.wire import DnsFailed, Resolver, bounded_client, system_resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """How an address is followed; stateless, safe to share between threads."""

    headers: Mapping[str, str]
    #: Also allow loopback and private addresses: an explicit setting for demos and intranets.
    allow_private: bool = False
    max_redirects: int = 5
    #: How names become addresses; tests put their own here.
    resolver: Resolver = field(default=system_resolver, repr=False)

    @contextmanager
    def follow(self, url: str, bounds: Bounds) -> Iterator[httpx.Response]:
        """Give the open response of a success; its body has not been read.

        Raises: FetchRefused, FetchFailedForNow; inside `failures_named` nothing else.
        """
        guard = Guard(allow_private=self.allow_private)
        with bounded_client(
            bounds, headers=dict(self.headers), vet=guard.vet, resolver=self.resolver
        ) as client:
            bounds.check()
            target = guard.check_url(url)
            # One more than the redirects: the last hop has to be an answer.
            for _ in range(self.max_redirects + 1):
                with _open(client, target) as response:
                    location = check_status(response)
                    if location is None:
                        yield response
                        return
                target = guard.check_url(_joined(target, location))
        raise FetchRefused(
            f"The address redirects more than {self.max_redirects} times.",
            code="too_many_redirects",
        )


@contextmanager
def failures_named(timeout: float) -> Iterator[None]:
    """Translate what the layers below raise; the one place that knows their names."""
    try:
        yield
    except OutOfTime as exc:
        raise FetchFailedForNow(
            f"The source was not there within its time (at most {timeout:g} s).", code="timeout"
        ) from exc
    except DnsFailed as exc:
        if exc.permanent:
            raise FetchRefused(
                f"There is no host named {exc.host!r}.", code="unknown_host"
            ) from exc
        raise FetchFailedForNow(
            f"The name {exc.host!r} could not be looked up.", code="dns_failed"
        ) from exc
    except httpcore.RemoteProtocolError as exc:
        raise FetchFailedForNow(
            f"The answer broke off or was no proper HTTP ({exc}).", code="cut_short"
        ) from exc
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as exc:
        if isinstance(_ssl_cause(exc), ssl.SSLCertVerificationError):
            raise FetchRefused(
                "The site's certificate is not valid, so it may be someone else.",
                code="bad_certificate",
            ) from exc
        raise FetchFailedForNow(
            f"The site could not be reached ({exc or type(exc).__name__}).",
            code="connection_failed",
        ) from exc


@contextmanager
def _open(client: httpx.Client, target: httpx.URL) -> Iterator[httpx.Response]:
    response = client.send(client.build_request("GET", target), stream=True)
    try:
        yield response
    finally:
        response.close()


def _joined(base: httpx.URL, location: str) -> str:
    try:
        return str(base.join(location))
    except (httpx.InvalidURL, ValueError) as exc:
        raise FetchRefused(
            f"The page redirects to an address that cannot be read ({exc}).", code="bad_url"
        ) from exc


def _ssl_cause(exc: BaseException) -> BaseException | None:
    return exc.__cause__ or exc.__context__
