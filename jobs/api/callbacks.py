"""Where providers call back: the signed token in the address is the only credential.

Guarantees: what is said is stored before this answers, and never trusted; a wrong token is an
address that does not exist. Leaves to others: tokens and ringing (``jobs.services.callbacks``).
"""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.answers import WITH_BODY, answers
from jobs.api.errors import Refusal
from jobs.services import callbacks


class CallbackShape(serializers.Serializer[Any]):
    """What became of a callback."""

    stored = serializers.BooleanField(help_text="False when the same had been said before.")


class CallbackView(APIView):
    """One address per request that was made of a provider."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="callbacks_receive",
        request=OpenApiTypes.OBJECT,
        responses=answers({202: CallbackShape}, *WITH_BODY, "value-too-large", "not-found"),
    )
    def post(self, request: Request, provider: str, token: str) -> Response:
        """Tell us that something about a request has changed; any JSON object. Repeats are free."""
        if not isinstance(request.data, Mapping):
            raise Refusal("validation", "The body must be a JSON object.")
        return Response(
            {"stored": callbacks.receive(provider, token, dict(request.data))}, status=202
        )
