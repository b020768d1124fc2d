"""Asking for a job, listing jobs, reading and deleting one.

Guarantees: each call sees the caller's tenant only; a 202 is sent after the service's write is
committed; a reading is answered from the business database even while the workflow store is away.
Leaves to others: what is allowed (``jobs.services.content``), shapes (``jobs.api.presentation``).
"""

import hashlib
import logging
from typing import Any

from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api import paging, place, presentation
from jobs.api.answers import WITH_BODY, WITH_KEY, answer_headers, answers, key_parameter
from jobs.api.authentication import caller_of, tenant_of
from jobs.api.checking import checked
from jobs.api.errors import Refusal
from jobs.api.idempotency import REPLAYED, accept
from jobs.api.renderers import encode
from jobs.api.serializers import (
    PRIORITIES,
    AcceptedShape,
    JobDetailShape,
    JobPageShape,
    JobRequest,
)
from jobs.dispatch import relay
from jobs.dispatch.states import REQUEST_TIMEOUT_SECONDS
from jobs.models import ContentJob
from jobs.models.content import OPEN_STATUSES
from jobs.runtime import get_kernel
from jobs.services import content, deleting
from kernel import Priority, Unavailable, Unreadable, WorkflowInstance

log = logging.getLogger(__name__)

_STATUSES = ("initial", "generating", "ready", "failed", "canceled")
_LIST_PARAMETERS = frozenset({"status", "limit", "cursor"})
#: What `Retry-After` says while a job is live, seconds.
LOOK_AGAIN_SECONDS = 2


class JobsView(APIView):
    """The tenant's jobs."""

    @extend_schema(
        operation_id="jobs_create",
        request=JobRequest,
        parameters=[key_parameter(), *answer_headers(202, "Location", REPLAYED)],
        responses=answers(
            {202: AcceptedShape}, *WITH_BODY, *WITH_KEY, "value-too-large", "quota-exceeded"
        ),
    )
    def post(self, request: Request) -> HttpResponse:
        """Ask for content work. The request is stored when this answers; the work follows."""
        body = checked(JobRequest, request)

        def perform() -> tuple[ContentJob, dict[str, Any]]:
            job = content.submit_job(
                tenant=tenant_of(request),
                kind=body["kind"],
                source_url=body.get("source_url", ""),
                options=dict(body.get("options", {})),
                metadata=body.get("metadata", {}),
                priority=PRIORITIES.get(body.get("priority", ""), Priority.ASYNC),
                created_by=caller_of(request),
            )
            return job, presentation.accepted(request, job)

        return accept(request, "jobs_create", request.data, perform)

    @extend_schema(
        operation_id="jobs_list",
        parameters=[
            OpenApiParameter("status", enum=_STATUSES),
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": paging.PAGE_ROWS_MAX}
            ),
            OpenApiParameter("cursor", str),
            *answer_headers(200, "Link"),
        ],
        responses=answers({200: JobPageShape}, "bad-filter", "bad-cursor"),
    )
    def get(self, request: Request) -> Response:
        """List the newest jobs first. Follow ``next`` as it is."""
        status, rows, after = _list_query(request)
        found = content.list_jobs(tenant_of(request), after=after, limit=rows + 1, status=status)
        page, more = found[:rows], len(found) > rows
        following = _next_address(request, page[-1]) if more else None
        body = {
            "results": [presentation.summary(request, job) for job in page],
            "next": following,
        }
        return Response(body, headers={"Link": f'<{following}>; rel="next"'} if following else None)


class JobView(APIView):
    """One job."""

    @extend_schema(
        operation_id="jobs_retrieve",
        parameters=[
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
            OpenApiParameter(
                "Prefer",
                str,
                OpenApiParameter.HEADER,
                description="`wait=N`: answer when the job is over (with `If-None-Match`: has "
                "changed), after N seconds at the latest; 30 are granted at most.",
            ),
            *answer_headers(200, "ETag", "Retry-After", "Preference-Applied"),
        ],
        responses=answers({200: JobDetailShape, 304: None}, "not-found"),
    )
    def get(self, request: Request, job_id: str) -> HttpResponse:
        """Read a job: its business facts, why it waits and how far it got."""
        job = content.get_job(tenant_of(request), job_id)
        instance, known = _instance(job)
        body = presentation.detail(request, job, instance, known=known)
        tag = f'"{hashlib.sha256(encode(body)).hexdigest()[:32]}"'
        if body["waiting"] is not None:
            # The line moves all the time, which is no change of the job: it is not in the tag.
            body["waiting"] |= place.place_of(presentation.of_this_round(job, instance))
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if job.status in OPEN_STATUSES:
            headers["Retry-After"] = str(LOOK_AGAIN_SECONDS)
        if _matches(request.META.get("HTTP_IF_NONE_MATCH", ""), tag):
            return HttpResponse(status=304, headers=headers)
        return Response(body, headers=headers)

    @extend_schema(
        operation_id="jobs_delete",
        responses=answers({204: None}, "not-found", "round-in-progress"),
    )
    def delete(self, request: Request, job_id: str) -> HttpResponse:
        """Delete a job; one that is open is canceled with it. On repeat: 404."""
        deleting.delete_job(tenant_of(request), job_id)
        return HttpResponse(status=204)


def _instance(job: ContentJob) -> tuple[WorkflowInstance | None, bool]:
    """Ask the kernel; the second value is False when it did not answer, or could not read it.

    The request path's breaker is asked first, so that readers do not wait one after another.
    """
    if not relay.breaker.allows():
        return None, False
    try:
        instance = get_kernel().find(
            biz_key=job.dispatch_biz_key or "", timeout=REQUEST_TIMEOUT_SECONDS
        )
    except Unavailable as error:
        relay.breaker.failed()
        log.warning("workflow store unavailable: %s", error)
        return None, False
    except Unreadable as error:
        relay.breaker.succeeded()
        log.error("job %s is shown without its workflow: %s", job.pk, error)
        return None, False
    relay.breaker.succeeded()
    return instance, True


def _list_query(request: Request) -> tuple[str | None, int, paging.Position | None]:
    query = request.query_params
    unknown = sorted(set(query) - _LIST_PARAMETERS)
    if unknown:
        known = ", ".join(sorted(_LIST_PARAMETERS))
        raise Refusal("bad-filter", f"Unknown parameters; known are {known}.")
    status = query.get("status")
    if status is not None and status not in _STATUSES:
        raise Refusal("bad-filter", f"`status` is one of {', '.join(_STATUSES)}.")
    cursor = query.get("cursor")
    after = paging.decode_cursor(cursor) if cursor is not None else None
    return status, paging.page_rows(query.get("limit")), after


def _next_address(request: Request, last: ContentJob) -> str:
    query = request.query_params.copy()
    query["cursor"] = paging.encode_cursor(last)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")


def _matches(header: str, tag: str) -> bool:
    """Compare weakly, as If-None-Match wants it."""
    offered = [candidate.removeprefix("W/") for candidate in parse_etags(header)]
    return tag in offered or "*" in offered
