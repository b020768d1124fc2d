"""Capacity for operators: what is in use, who waits, and changes of limits while work goes on.

```
GET ─▶ ETag "7" ─▶ PATCH, If-Match "7" ─▶ kernel: one conditional update on revision 7
                                           ├─ stored: 200, ETag "8"
                                           └─ somebody was faster: 412, the present ETag
```

Guarantees: only operators get in; a change names the revision it is based on and why it is made, so
two operators never overwrite each other unseen, and a repeat of a change that was stored is a 412
that changes nothing. Leaves to others: limits and permits (``kernel.capacity``), shapes
(``jobs.api.capacity_shapes``). Calls of operators are not counted against any tenant's rate.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from jobs.api import capacity_shapes as shapes
from jobs.api import paging
from jobs.api.answers import WITH_BODY, answer_headers, answers
from jobs.api.authentication import IsOperator, caller_of
from jobs.api.checking import checked
from jobs.api.errors import Refusal, problem
from jobs.dispatch import relay
from jobs.models import ApiToken
from jobs.resources import RESOURCES
from jobs.runtime import get_kernel
from kernel import InvalidValue, ResourceStatus, RevisionConflict, StoreUnavailable

_T = TypeVar("_T")

#: Longest name of a resource that is looked for, characters.
NAME_CHARACTERS = 200
#: How long one call waits for MongoDB.
_PATIENCE_SECONDS = 1.0
#: What any change may answer beside what its body may.
_CHANGE = ("bad-request", "not-found", "precondition-failed", "precondition-required")
#: Use and line change all the time, without a new revision.
_FRESH = {"Cache-Control": "no-store"}

_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The `ETag` of the answer this change is based on; `*` is not accepted.",
)
_TAG = re.compile(r'\s*"(0|[1-9][0-9]{0,17})"\s*')
_FOREIGN_TAG = re.compile(r'\s*(W/)?"[^"]*"\s*')


class CapacityView(APIView):
    """Every resource there is."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="capacity_list",
        parameters=[
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": paging.PAGE_ROWS_MAX}
            ),
            OpenApiParameter("after", str, description="The last name of the page before."),
        ],
        responses=answers({200: shapes.ResourcePageShape}, "bad-filter"),
    )
    def get(self, request: Request) -> Response:
        """List resources by name. Follow ``next`` as it is."""
        query = request.query_params
        if set(query) - {"limit", "after"}:
            raise Refusal("bad-filter", "Unknown parameters; known are after, limit.")
        rows, after = paging.page_rows(query.get("limit")), query.get("after", "")
        capacity = get_kernel().capacity
        names = sorted({*RESOURCES, *_asked(capacity.resources)})
        found = [name for name in names if name > after]
        page = _asked(lambda: capacity.statuses(found[:rows]))
        following = None
        if len(found) > rows:
            onward = query.copy()
            onward["after"] = found[rows - 1]
            following = request.build_absolute_uri(f"{request.path}?{onward.urlencode()}")
        results = [_summary(request, status) for status in page]
        return Response({"results": results, "next": following}, headers=_FRESH)


class ResourceView(APIView):
    """One resource."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="capacity_retrieve",
        parameters=answer_headers(200, "ETag"),
        responses=answers({200: shapes.ResourceDetailShape}, "not-found", "validation"),
    )
    def get(self, request: Request, resource: str) -> HttpResponse:
        """Read a resource. A name nobody has used yet is one without limits, at revision 0."""
        return _shown(request, _asked(lambda: get_kernel().capacity.status(_named(resource))))

    @extend_schema(
        operation_id="capacity_limit",
        request=shapes.LimitRequest,
        parameters=[_MATCH, *answer_headers(200, "ETag")],
        responses=answers({200: shapes.ResourceDetailShape}, *WITH_BODY, *_CHANGE),
    )
    def patch(self, request: Request, resource: str) -> HttpResponse:
        """Change limits, for good or for `expires_in` seconds. Holders are never interrupted."""
        fields = checked(shapes.LimitRequest, request)
        return _changed(request, resource, get_kernel().capacity.set_limit, fields)


class PauseView(APIView):
    """The closing of a resource until further notice."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="capacity_pause",
        request=shapes.ReasonRequest,
        parameters=[_MATCH, *answer_headers(200, "ETag")],
        responses=answers({200: shapes.ResourceDetailShape}, *WITH_BODY, *_CHANGE),
    )
    def post(self, request: Request, resource: str) -> HttpResponse:
        """Let nothing start. Holders finish, and the line keeps its order."""
        fields = checked(shapes.ReasonRequest, request)
        return _changed(request, resource, get_kernel().capacity.pause, fields)


class ResumeView(APIView):
    """The end of a pause."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="capacity_resume",
        request=shapes.ReasonRequest,
        parameters=[_MATCH, *answer_headers(200, "ETag")],
        responses=answers({200: shapes.ResourceDetailShape}, *WITH_BODY, *_CHANGE),
    )
    def post(self, request: Request, resource: str) -> HttpResponse:
        """Let work start again, in the order of the line."""
        fields = checked(shapes.ReasonRequest, request)
        return _changed(request, resource, get_kernel().capacity.resume, fields)


class CooldownView(APIView):
    """The closing of a resource for a while."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="capacity_cooldown",
        request=shapes.CooldownRequest,
        parameters=[_MATCH, *answer_headers(200, "ETag")],
        responses=answers({200: shapes.ResourceDetailShape}, *WITH_BODY, *_CHANGE),
    )
    def post(self, request: Request, resource: str) -> HttpResponse:
        """Let nothing start for `seconds`; 0 ends a cooldown. Holders finish, the line is kept."""
        fields = checked(shapes.CooldownRequest, request)
        return _changed(request, resource, get_kernel().capacity.cooldown, fields)


def _changed(
    request: Request,
    resource: str,
    change: Callable[..., ResourceStatus],
    fields: dict[str, Any],
) -> HttpResponse:
    name, revision = _named(resource), _revision(request)
    if revision is None:
        current = _asked(lambda: get_kernel().capacity.status(name))
        return _conflict(request, current.revision)
    try:
        status = _asked(lambda: change(name, **fields, by=_by(request), if_revision=revision))
    except RevisionConflict as conflict:
        return _conflict(request, conflict.revision)
    return _shown(request, status)


def _conflict(request: Request, revision: int) -> HttpResponse:
    refusal = Refusal("precondition-failed", revision=revision)
    return problem(request, refusal, headers={"ETag": f'"{revision}"'})


def _asked(question: Callable[[], _T]) -> _T:
    """Ask the kernel; what it refuses is told like any other invalid request.

    The request path's breaker is asked first, so that nobody waits behind others for a dead store.
    """
    if not relay.breaker.allows():
        raise Refusal("unavailable", "The workflow store does not answer.")
    try:
        with get_kernel().within(_PATIENCE_SECONDS):
            answer = question()
    except StoreUnavailable:
        relay.breaker.failed()
        raise
    except InvalidValue as error:
        relay.breaker.succeeded()
        raise Refusal("validation", f"{error.what}: {error.reason}") from None
    except RevisionConflict:
        relay.breaker.succeeded()
        raise
    relay.breaker.succeeded()
    return answer


def _named(resource: str) -> str:
    if len(resource) > NAME_CHARACTERS:
        raise Refusal("not-found")
    return resource


def _revision(request: Request) -> int | None:
    """Read If-Match; None for a tag of ours that no revision ever had.

    Raises: Refusal ``precondition-required``, ``bad-request``.
    """
    header = request.META.get("HTTP_IF_MATCH", "")
    if header.strip() in {"", "*"}:
        raise Refusal("precondition-required")
    if found := _TAG.fullmatch(header):
        return int(found[1])
    if _FOREIGN_TAG.fullmatch(header):
        return None
    raise Refusal("bad-request", "Send one ETag as `If-Match`, in its double quotes.")


def _by(request: Request) -> str:
    user = caller_of(request).get_username()
    token = request.auth
    return f"{user} (token {token.pk})" if isinstance(token, ApiToken) else user


def _shown(request: Request, status: ResourceStatus) -> Response:
    body = {**shapes.detail(status), "links": _links(request, status.resource)}
    return Response(body, headers={**_FRESH, "ETag": f'"{status.revision}"'})


def _summary(request: Request, status: ResourceStatus) -> dict[str, Any]:
    return {**shapes.summary(status), "links": _links(request, status.resource)}


def _links(request: Request, resource: str) -> dict[str, str]:
    names = {
        "self": "capacity-resource",
        "pause": "capacity-pause",
        "resume": "capacity-resume",
        "cooldown": "capacity-cooldown",
    }
    return {name: reverse(route, args=[resource], request=request) for name, route in names.items()}
