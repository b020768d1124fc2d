"""Rotation of the token that makes the call.

Guarantees: a rotated token goes on working for the overlap the caller asked for, so that its users
can be switched one by one; the new text is in this one answer only. Leaves to others: the rules
(``jobs.services.access``). A call repeated because its answer was lost gets another token, as long
as the lost one was never used; no key is needed or kept for it.
"""

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.answers import WITH_BODY, answers
from jobs.api.authentication import HasTenant, IsOperator
from jobs.api.checking import checked
from jobs.api.errors import Refusal
from jobs.api.presentation import moment
from jobs.api.serializers import RotatedShape, RotateRequest
from jobs.models import ApiToken
from jobs.services import access


class TokenRotateView(APIView):
    """The caller's own token."""

    permission_classes = (HasTenant | IsOperator,)

    @extend_schema(
        operation_id="tokens_rotate",
        request=RotateRequest,
        responses=answers({201: RotatedShape}, *WITH_BODY, "token-replaced"),
    )
    def post(self, request: Request) -> HttpResponse:
        """Get a new token in place of the one this call is made with."""
        fields = checked(RotateRequest, request)
        if not isinstance(request.auth, ApiToken):
            raise Refusal("forbidden", "Only a call made with a token can rotate that token.")
        seconds = fields.get("overlap_seconds")
        overlap = access.OVERLAP if seconds is None else timedelta(seconds=seconds)
        issued = access.rotate_token(request.auth, overlap=overlap)
        request.auth.refresh_from_db(fields=["expires_at"])
        body: dict[str, Any] = {
            "token": issued.raw,
            "name": issued.token.name,
            "tenant": issued.token.tenant,
            "expires_at": moment(issued.token.expires_at),
            "replaced_expires_at": moment(request.auth.expires_at),
        }
        return Response(body, status=201)
