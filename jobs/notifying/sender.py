"""Post one signed message to one address.

Guarantees: only addresses the guard allows are contacted, and never one a redirect names; the
answer's body is not read; a call ends within its bounds. Leaves to others: further attempts.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from jobs.fetching.guard import Guard
from jobs.fetching.hops import failures_named
from jobs.notifying.signing import signed_headers, tenant_secrets
from jobs.ports.bounds import Bounds, StopSign
from jobs.ports.errors import FetchFailedForNow, FetchRefused
from jobs.ports.notification import NotifyFailedForNow, NotifyRefused
from jobs.ports.retry_after import retry_after
from jobs.ports.wire import Resolver, bounded_client, system_resolver

USER_AGENT = "Baton/0.1 (webhooks)"
#: The receiver says that nobody lives here any more.
_GONE = 410
#: Refusals that another look may cure: the name or the certificate may be put right.
_MAY_PASS = frozenset({"unknown_host", "bad_certificate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSender:
    """Sends webhooks; stateless, safe to share between threads."""

    #: Keys that tenants' secrets are derived from, the present one first.
    keys: Sequence[str] = field(repr=False)
    #: Also allow loopback and private addresses: an explicit setting for demos and intranets.
    allow_private: bool = False
    #: Seconds for the whole call by the wall clock; short, because a worker waits.
    timeout: float = 10.0
    #: How names become addresses; tests put their own here.
    resolver: Resolver = field(default=system_resolver, repr=False)

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
        """Post the message, signed now; gives the receiver's status, which is 2xx.

        Raises: NotifyRefused, NotifyFailedForNow, PortCancelled. On repeat: posts it again.
        """
        bounds = Bounds.of(timeout=self.timeout, deadline=deadline, cancelled=cancelled)
        headers = signed_headers(
            body,
            message_id=message_id,
            timestamp=int(time.time()),
            secrets=tenant_secrets(tenant, self.keys),
        )
        guard = Guard(allow_private=self.allow_private)
        with (
            _as_the_receivers(),
            failures_named(self.timeout),
            bounded_client(
                bounds,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
                vet=guard.vet,
                resolver=self.resolver,
            ) as client,
        ):
            target = guard.check_url(url)
            request = client.build_request("POST", target, content=body, headers=headers)
            response = client.send(request, stream=True)
            response.close()
        status = response.status_code
        if 200 <= status < 300:
            return status
        if status == _GONE:
            raise NotifyRefused("The receiver answered 410: nobody is there.", code="gone")
        raise NotifyFailedForNow(
            f"The receiver answered {status}; it has to answer 2xx.",
            code="server_error" if status >= 500 else "not_taken",
            retry_after=retry_after(response.headers),
        )


@contextmanager
def _as_the_receivers() -> Iterator[None]:
    """Say of a receiver what the layers below say of a page."""
    try:
        yield
    except FetchRefused as exc:
        if exc.code in _MAY_PASS:
            raise NotifyFailedForNow(str(exc), code=exc.code) from exc
        raise NotifyRefused(str(exc), code=exc.code) from exc
    except FetchFailedForNow as exc:
        raise NotifyFailedForNow(exc.message, code=exc.code) from exc
