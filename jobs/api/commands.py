"""The commands on one job: retry, regenerate, cancel.

Guarantees: a 202 is sent after the command is committed; with an ``Idempotency-Key`` a repeat gets
the first answer, without one the service decides what a repeat means. Leaves to others: what is
allowed (``jobs.services.content``), keys (``jobs.api.idempotency``).
"""

from collections.abc import Callable

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs.api import presentation
from jobs.api.answers import WITH_BODY, WITH_KEY, answer_headers, answers, key_parameter
from jobs.api.authentication import tenant_of
from jobs.api.checking import checked
from jobs.api.idempotency import REPLAYED, accept
from jobs.api.serializers import AcceptedShape, EmptyRequest
from jobs.models import ContentJob
from jobs.services import content

Command = Callable[[str, str], ContentJob]

_PARAMETERS = [key_parameter(), *answer_headers(202, "Location", REPLAYED)]


class JobRetryView(APIView):
    """A new round of a failed job."""

    @extend_schema(
        operation_id="jobs_retry",
        request=EmptyRequest,
        parameters=_PARAMETERS,
        responses=answers(
            {202: AcceptedShape},
            *(*WITH_BODY, *WITH_KEY, "not-found", "not-retryable", "round-in-progress"),
            "quota-exceeded",
        ),
    )
    def post(self, request: Request, job_id: str) -> HttpResponse:
        """Retry a failed job. Of two racing retries one is accepted, the other gets 409."""
        return _command(request, "jobs_retry", job_id, content.retry_job)


class JobRegenerateView(APIView):
    """A job done over from the start."""

    @extend_schema(
        operation_id="jobs_regenerate",
        request=EmptyRequest,
        parameters=_PARAMETERS,
        responses=answers(
            {202: AcceptedShape},
            *(*WITH_BODY, *WITH_KEY, "not-found", "round-in-progress", "quota-exceeded"),
        ),
    )
    def post(self, request: Request, job_id: str) -> HttpResponse:
        """Do a job over that is over; its result is cleared and nothing of it used again."""
        return _command(request, "jobs_regenerate", job_id, content.regenerate_job)


class JobCancelView(APIView):
    """The end of a job nobody wants any more."""

    @extend_schema(
        operation_id="jobs_cancel",
        request=EmptyRequest,
        parameters=_PARAMETERS,
        responses=answers(
            {202: AcceptedShape}, *WITH_BODY, *WITH_KEY, "not-found", "already-terminal"
        ),
    )
    def post(self, request: Request, job_id: str) -> HttpResponse:
        """Cancel a job. On repeat: the same answer."""
        return _command(request, "jobs_cancel", job_id, content.cancel_job)


def _command(request: Request, operation: str, job_id: str, command: Command) -> HttpResponse:
    body = checked(EmptyRequest, request)

    def perform() -> tuple[ContentJob, dict[str, object]]:
        job = command(tenant_of(request), job_id)
        return job, presentation.accepted(request, job)

    return accept(request, operation, body, perform)
