"""The choice a job leaves to its user: what is offered, and taking one.

Guarantees: a 202 is sent after the choice is committed; the same option again gets the same answer.
Leaves to others: which choice is open, and who wins (``jobs.services.choices``).
"""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api import presentation
from jobs.api.answers import WITH_BODY, WITH_KEY, answer_headers, answers, key_parameter
from jobs.api.authentication import caller_of, tenant_of
from jobs.api.checking import checked
from jobs.api.errors import Refusal
from jobs.api.idempotency import REPLAYED, accept
from jobs.api.serializers import AcceptedShape, StrictSerializer, StrictText
from jobs.models import ContentJob
from jobs.models.waiting import OPTION_CHARACTERS
from jobs.services import choices


class ChooseRequest(StrictSerializer):
    """The option to take."""

    option = StrictText(max_length=OPTION_CHARACTERS)


class CandidateShape(serializers.Serializer[Any]):
    """One of the options."""

    option = serializers.CharField()
    summary = serializers.CharField()
    sentences = serializers.ListField(child=serializers.CharField())


class ChoiceShape(serializers.Serializer[Any]):
    """What the job's present round asks."""

    round = serializers.IntegerField()
    candidates = CandidateShape(many=True)
    chosen = serializers.CharField(allow_null=True)
    opened_at = serializers.DateTimeField()
    chosen_at = serializers.DateTimeField(allow_null=True)


class JobChoiceView(APIView):
    """What is offered."""

    @extend_schema(
        operation_id="jobs_choice",
        responses=answers({200: ChoiceShape}, "not-found"),
    )
    def get(self, request: Request, job_id: str) -> Response:
        """Read the candidates of the job's present round, and which was chosen."""
        choice = choices.find_choice(tenant_of(request), job_id)
        if choice is None:
            raise Refusal("not-found", "This round of the job offers no choice, or not yet.")
        return Response(
            {
                "round": choice.round,
                "candidates": choice.candidates,
                "chosen": choice.option,
                "opened_at": presentation.moment(choice.opened_at),
                "chosen_at": presentation.moment(choice.chosen_at),
            }
        )


class JobChooseView(APIView):
    """Taking one."""

    @extend_schema(
        operation_id="jobs_choose",
        request=ChooseRequest,
        parameters=[key_parameter(), *answer_headers(202, "Location", REPLAYED)],
        responses=answers(
            {202: AcceptedShape},
            *(*WITH_BODY, *WITH_KEY, "not-found"),
            *("choice-not-open", "choice-already-made", "unknown-option"),
        ),
    )
    def post(self, request: Request, job_id: str) -> HttpResponse:
        """Choose one of the candidates. On repeat with the same option: the same answer."""
        body = checked(ChooseRequest, request)

        def perform() -> tuple[ContentJob, dict[str, Any]]:
            job = choices.choose(
                tenant_of(request), job_id, body["option"], chosen_by=caller_of(request)
            )
            return job, presentation.accepted(request, job)

        return accept(request, "jobs_choose", request.data, perform)
