"""Hold each tenant to its rate, and tell it what is left.

Guarantees: the rate holds over all processes of a deployment; every answer to a known tenant
carries ``RateLimit`` and ``RateLimit-Policy``. Leaves to others: counting
(``jobs.services.rate``), and callers without a tenant, who are refused before they get here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from jobs.api.errors import Refusal
from jobs.api.long_poll import is_repeated_look
from jobs.services.rate import Limiter, Rate, Verdict

if TYPE_CHECKING:
    # Views load the classes of this module from the settings.
    from rest_framework.views import APIView

_limiter = Limiter()


class TenantThrottle(BaseThrottle):
    """One token of the tenant's bucket for each request."""

    def allow_request(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 -- DRF's
        """Let the request pass. Raises: Refusal ``rate-limited``."""
        setting: tuple[int, int] | None = settings.BATON_API_RATE
        base = request._request
        tenant: str | None = getattr(request, "tenant", None)
        # Views for anybody (the schema) have no tenant.
        if setting is None or tenant is None or is_repeated_look(base):
            return True
        rate = Rate(calls=setting[0], seconds=setting[1])
        verdict = _limiter.check(tenant, rate)
        base.rate_verdict = verdict  # type: ignore[attr-defined]
        if not verdict.allowed:
            raise Refusal("rate-limited", retry_after=_whole(verdict.wait_seconds))
        return True


def add_headers(request: HttpRequest, response: HttpResponseBase) -> None:
    """Tell the caller its policy and what is left; nothing where no rate applies."""
    verdict: Verdict | None = getattr(request, "rate_verdict", None)
    if verdict is None:
        return
    rate, reset = verdict.rate, _whole(verdict.wait_seconds)
    response["RateLimit-Policy"] = f'"default";q={rate.calls};w={rate.seconds}'
    response["RateLimit"] = f'"default";r={verdict.left};t={reset}'


def _whole(seconds: float) -> int:
    return max(1, math.ceil(seconds))
