"""What every request gets: an id, a log line, what is left of its rate, and problem+json.

Guarantees: the id in the answer's ``Request-Id``, in problems and in log lines is the same; a
client's own id is kept when it is sane; errors below ``/api/`` are problem+json. Leaves to
others: errors inside views (``jobs.api.errors``), rates (``jobs.api.throttling``).
"""

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from jobs.api.errors import problem_for_status
from jobs.api.problems import JSON_MEDIA_TYPE
from jobs.api.throttling import add_headers

log = structlog.get_logger("baton.request")

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_QUIET_PREFIXES = ("/health/", "/static/")

NextHandler = Callable[[HttpRequest], HttpResponseBase]


class RequestIdMiddleware:
    """Give each request an id and write one line about it."""

    def __init__(self, get_response: NextHandler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle one request."""
        offered = request.headers.get("Request-Id", "")
        request_id = offered if _SANE_ID.fullmatch(offered) else f"req_{uuid.uuid4().hex}"
        request.request_id = request_id  # type: ignore[attr-defined]
        started = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
            response["Request-Id"] = request_id
            add_headers(request, response)
            if not request.path.startswith(_QUIET_PREFIXES):
                log.info(
                    "request",
                    method=request.method,
                    path=request.path,
                    status=response.status_code,
                    ms=round((time.perf_counter() - started) * 1000, 1),
                )
        return response


class ProblemMiddleware:
    """Turn what the framework itself refuses below ``/api/`` into problem+json."""

    def __init__(self, get_response: NextHandler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle one request."""
        response = self.get_response(request)
        if not request.path.startswith("/api/"):
            return response
        if response.status_code >= 400 and response.get("Content-Type") != JSON_MEDIA_TYPE:
            response = problem_for_status(request, response.status_code)
        if request.method in _WRITES:
            response["Cache-Control"] = "no-store"
        return response
