"""What an HTTP status means for a fetch.

Guarantees: every status is a page, a redirect, a final refusal or a failure for now.
Leaves to others: following the redirect and checking its target. Pure.
"""

import httpx

from jobs.ports.errors import FetchFailedForNow, FetchRefused
from jobs.ports.retry_after import retry_after

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_FORBIDDEN = frozenset({401, 402, 403, 407, 451})
_BUSY = frozenset({408, 425, 429})


def check_status(response: httpx.Response) -> str | None:
    """Give the redirect's target, or None when the body is the page.

    Raises: FetchRefused (not_found, forbidden, refused_by_site, no_text), FetchFailedForNow
    (rate_limited, server_error; `retry_after` as the site asked).
    """
    status = response.status_code
    if status in _REDIRECTS:
        location = response.headers.get("location")
        if not location:
            raise FetchRefused(
                f"The site redirects ({status}) without saying where to.", code="refused_by_site"
            )
        return str(location)
    if status in (204, 205):
        raise FetchRefused(f"The site answered without content ({status}).", code="no_text")
    if 200 <= status < 300:
        return None
    if status in _BUSY or status >= 500:
        code = "server_error" if status >= 500 else "rate_limited"
        raise FetchFailedForNow(
            f"The site answered {status}; it may do better later.",
            code=code,
            retry_after=retry_after(response.headers),
        )
    if status in _GONE:
        raise FetchRefused(f"The site has no such page ({status}).", code="not_found")
    if status in _FORBIDDEN:
        raise FetchRefused(f"The site does not let this page be read ({status}).", code="forbidden")
    raise FetchRefused(f"The site refused the request ({status}).", code="refused_by_site")
