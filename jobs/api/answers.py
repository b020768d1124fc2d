"""What each call may answer, for the OpenAPI description: success, and every refusal by example.

Guarantees: a refusal in the description is one of ``jobs.api.problems``, with its status and media
type. Leaves to others: which call may refuse with what (the views).
"""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from jobs.api.idempotency import HEADER, KEY_CHARACTERS_MIN, REPLAYED
from jobs.api.problems import JSON_MEDIA_TYPE, PROBLEMS, ProblemType
from jobs.api.serializers import ProblemShape
from jobs.models.idempotency import KEY_CHARACTERS

#: What any call may answer.
_ANYWHERE = (
    "bad-request",
    "unauthenticated",
    "forbidden",
    "not-acceptable",
    "rate-limited",
    "internal",
    "unavailable",
)
#: What any call with a body may answer.
WITH_BODY = (
    "malformed-json",
    "too-large",
    "unsupported-media-type",
    "validation",
    "value-not-kept",
)
#: What any call that takes a key may answer.
WITH_KEY = ("idempotency-key-malformed", "idempotency-in-progress", "idempotency-key-reused")


def answers(success: Mapping[int, Any], *slugs: str) -> dict[Any, Any]:
    """Describe a call's answers: its successes, and its refusals by slug."""
    by_status: dict[int, list[ProblemType]] = {}
    for slug in (*_ANYWHERE, *slugs):
        kind = PROBLEMS[slug]
        by_status.setdefault(kind.status, []).append(kind)
    refusals = {
        (status, JSON_MEDIA_TYPE): OpenApiResponse(
            ProblemShape,
            description="; ".join(f"`{kind.slug}`: {kind.title}" for kind in kinds),
            examples=[_example(kind) for kind in kinds],
        )
        for status, kinds in sorted(by_status.items())
    }
    return {**success, **refusals}


def key_parameter() -> OpenApiParameter:
    """Describe the header of a client's key."""
    return OpenApiParameter(
        HEADER,
        {"type": "string", "minLength": KEY_CHARACTERS_MIN, "maxLength": KEY_CHARACTERS + 2},
        OpenApiParameter.HEADER,
        description=(
            "Makes the call safe to repeat: the same request with the same key is answered with "
            "the first answer. Visible ASCII, quoted or bare."
        ),
    )


def answer_headers(status: int, *names: str) -> list[OpenApiParameter]:
    """Describe headers of an answer."""
    return [
        OpenApiParameter(
            name, str, OpenApiParameter.HEADER, response=[status], description=_HEADERS[name]
        )
        for name in names
    ]


_HEADERS = {
    "Location": "Address of the job.",
    REPLAYED: "`true` when this repeats the answer of an earlier request with the same key.",
    "ETag": "Names this state; a job's is for `If-None-Match`, a resource's for `If-Match`.",
    "Retry-After": "Seconds after which to look again; absent when the job is over.",
    "Preference-Applied": "The wait that was granted.",
    "Link": 'Address of the next page, with `rel="next"`.',
}


def _example(kind: ProblemType) -> OpenApiExample:
    value = {
        "type": f"https://api.example/problems/{kind.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": kind.advice,
        "instance": "/api/v1/jobs",
        "request_id": "req_0123456789abcdef0123456789abcdef",
        "retryable": kind.retryable,
    }
    return OpenApiExample(
        kind.slug,
        value=value,
        summary=kind.title,
        response_only=True,
        media_type=JSON_MEDIA_TYPE,
        status_codes=[str(kind.status)],
    )
