"""Where errors become HTTP: the only module that knows both.

Guarantees: every refusal is problem+json with a type of :data:`jobs.api.problems.PROBLEMS`; no
traceback, driver message or value that cannot be encoded reaches a client.
Leaves to others: the meaning of the refusals (``jobs.api.problems``).
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from rest_framework import exceptions
from rest_framework.request import Request

from jobs.api.presentation import moment
from jobs.api.problems import BY_STATUS, JSON_MEDIA_TYPE, PROBLEMS
from jobs.services import errors as service
from kernel import InvalidValue, KernelError, Unavailable, Unreadable, ValueTooLarge

log = logging.getLogger(__name__)

#: What `Retry-After` says while a server is away, seconds.
RETRY_AFTER_SECONDS = 5
#: A detail is for people: long ones are cut, characters.
DETAIL_CHARS = 1000
#: Places listed in one answer.
ERRORS_LISTED_MAX = 50

_SERVICE_SLUGS: tuple[tuple[type[Exception], str], ...] = (
    (service.JobNotFound, "not-found"),
    (service.NotRetryable, "not-retryable"),
    (service.RoundInProgress, "round-in-progress"),
    (service.AlreadyTerminal, "already-terminal"),
    (service.TokenReplaced, "token-replaced"),
    (service.EventClosed, "event-closed"),
    (service.ChoiceNotOpen, "choice-not-open"),
    (service.ChoiceMade, "choice-already-made"),
    (service.UnknownOption, "unknown-option"),
)


class Refusal(exceptions.APIException):
    """A refusal of a named type, raised anywhere inside a view or parser."""

    def __init__(
        self,
        slug: str,
        detail: str = "",
        *,
        errors: Sequence[Mapping[str, str]] = (),
        **members: object,
    ) -> None:
        super().__init__(detail)
        self.slug = slug
        self.status_code = PROBLEMS[slug].status
        self.text = detail
        self.errors = list(errors)
        self.members = members


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Answer an error raised in a DRF view."""
    request = context["request"]
    refusal, headers = _refusal_of(error)
    if refusal.slug == "internal":
        log.error("request failed", exc_info=error)
    return problem(request, refusal, headers=headers)


def problem(
    request: HttpRequest | Request, refusal: Refusal, *, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Build the problem+json answer."""
    kind = PROBLEMS[refusal.slug]
    base: Any = getattr(request, "_request", request)
    body: dict[str, object] = {
        "type": _absolute(base, f"/problems/{kind.slug}"),
        "title": kind.title,
        "status": kind.status,
        "detail": (refusal.text or kind.advice)[:DETAIL_CHARS],
        "instance": base.path,
        "request_id": getattr(base, "request_id", ""),
        "retryable": kind.retryable,
        **refusal.members,
    }
    if refusal.errors:
        body["errors"] = refusal.errors[:ERRORS_LISTED_MAX]
    response = HttpResponse(
        # ASCII with escapes, so that what a client sent can be named whatever it was.
        json.dumps(body, ensure_ascii=True, default=str),
        status=kind.status,
        content_type=JSON_MEDIA_TYPE,
        headers=dict(headers or {}),
    )
    response["Cache-Control"] = "no-store"
    if kind.status == 503:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if "retry_after" in refusal.members:
        response["Retry-After"] = str(refusal.members["retry_after"])
    return response


def problem_404(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Answer an address that no route matches; whoever types one may not know where to read."""
    docs = _absolute(request, "/api/v1/docs")
    hint = f"There is no such address. {docs} lists the API's; none of them ends in a slash."
    return problem(request, Refusal("not-found", hint))


def problem_500(request: HttpRequest) -> HttpResponse:
    """Answer an error that escaped every view."""
    return problem(request, Refusal("internal"))


def problem_for_status(request: HttpRequest, status: int) -> HttpResponse:
    """Answer what the framework refused outside any view."""
    return problem(request, Refusal(BY_STATUS.get(status, _fallback(status))))


def _refusal_of(error: Exception) -> tuple[Refusal, dict[str, str]]:
    if isinstance(error, Refusal):
        return error, {}
    for kind, slug in _SERVICE_SLUGS:
        if isinstance(error, kind):
            return Refusal(slug, str(error)), {}
    if isinstance(error, exceptions.APIException | Http404 | PermissionDenied):
        return _from_framework(error)
    if isinstance(error, service.ServiceError | KernelError):
        return _from_domain(error), {}
    if isinstance(error, OperationalError | InterfaceError):
        log.warning("business database unavailable", exc_info=error)
        return Refusal("unavailable", "The business database does not answer."), {}
    if isinstance(error, RequestDataTooBig):
        return Refusal("too-large"), {}
    if isinstance(error, UnreadablePostError | SuspiciousOperation):
        return Refusal("bad-request"), {}
    return Refusal("internal"), {}


def _from_framework(
    error: exceptions.APIException | Http404 | PermissionDenied,
) -> tuple[Refusal, dict[str, str]]:
    headers: dict[str, str] = {}
    if isinstance(error, Http404):
        return Refusal("not-found"), headers
    if isinstance(error, PermissionDenied):
        return Refusal("forbidden"), headers
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, exceptions.ValidationError):
        return Refusal("validation", errors=_pointers(error.detail)), headers
    slug = BY_STATUS.get(error.status_code, _fallback(error.status_code))
    return Refusal(slug, str(error.detail)), headers


def _from_domain(error: service.ServiceError | KernelError) -> Refusal:
    if isinstance(error, service.KeyReused):
        original = {"id": error.job_id, "created_at": moment(error.created_at)}
        return Refusal("idempotency-key-reused", original=original)
    if isinstance(error, service.QuotaExceeded):
        # Nobody knows when a round ends; a minute keeps waiting clients from hurrying.
        return Refusal(
            "quota-exceeded", str(error), limit=error.limit, used=error.used, retry_after=60
        )
    if isinstance(error, service.KeyInProgress):
        return Refusal("idempotency-in-progress", str(error), retry_after=1)
    if isinstance(error, ValueTooLarge):
        return Refusal(
            "value-too-large",
            str(error),
            size_bytes=error.size_bytes,
            limit_bytes=error.limit_bytes,
        )
    if isinstance(error, InvalidValue):
        detail = f"{error.reason} (at {error.path})"[:DETAIL_CHARS]
        place = {"pointer": _pointer_of_path(error.path), "detail": detail}
        return Refusal("value-not-kept", error.reason, errors=[place])
    if isinstance(error, Unavailable):
        log.warning("kernel unavailable", exc_info=error)
        return Refusal("unavailable", "The workflow store does not answer.")
    if isinstance(error, Unreadable):
        log.error("unreadable", exc_info=error)
        return Refusal("unavailable", "A newer version wrote this; it can be asked again soon.")
    if isinstance(error, service.InvalidRequest):
        places = [{"pointer": at.pointer, "detail": at.detail} for at in error.problems]
        return Refusal("validation", errors=places)
    return Refusal("internal")


def _pointers(detail: object, prefix: str = "") -> list[dict[str, str]]:
    """Flatten DRF's nested details into JSON pointers."""
    if isinstance(detail, Mapping):
        found: list[dict[str, str]] = []
        for key, value in detail.items():
            whole = key == "non_field_errors"
            found += _pointers(value, prefix if whole else f"{prefix}/{_escaped(str(key))}")
        return found
    if isinstance(detail, list | tuple):
        return [place for item in detail for place in _pointers(item, prefix)]
    return [{"pointer": prefix, "detail": str(detail)}]


def _pointer_of_path(path: str) -> str:
    """Point to the field; the kernel's path shortens names, so it is no pointer by itself."""
    found = re.match(r"\$\.(\w+)", path)
    return f"/{found[1]}" if found else ""


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _fallback(status: int) -> str:
    return "bad-request" if status < 500 else "internal"


def _absolute(request: HttpRequest, path: str) -> str:
    try:
        return request.build_absolute_uri(path)
    except SuspiciousOperation:
        # A Host header we do not answer to is not repeated.
        return path
