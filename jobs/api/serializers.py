"""The shapes of requests and answers, for checking and for the OpenAPI schema.

Guarantees: unknown fields are refused, values are never converted from another JSON type, and
``metadata`` passes through untouched. Leaves to others: bounds that belong to the business
(``jobs.services``) and to storage (``kernel``).
"""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs.api.errors import Refusal
from jobs.services.access import OVERLAP_MAX
from kernel import Priority

URL_CHARS = 2048


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses fields it does not know."""

    def to_internal_value(self, data: Any) -> Any:
        """Check the whole object. Raises: ValidationError."""
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                known = ", ".join(sorted(self.fields))
                raise serializers.ValidationError(
                    dict.fromkeys(unknown, f"There is no such field; known are {known}.")
                )
        return super().to_internal_value(data)


class StrictInteger(serializers.IntegerField):
    """An integer that is written as one."""

    def to_internal_value(self, data: Any) -> int:
        """Refuse strings, floats and booleans. Raises: ValidationError."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictText(serializers.CharField):
    """A text that is written as one, kept with its white space."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """Refuse numbers and booleans. Raises: ValidationError."""
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


@extend_schema_field(
    {
        "type": "string",
        "minLength": 1,
        "maxLength": URL_CHARS,
        "pattern": r"^[hH][tT][tT][pP][sS]?://[^\s/?#]\S*$",
    }
)
class WebAddress(StrictText):
    """An http or https URL; the services look at it more closely."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=URL_CHARS, **options)


@extend_schema_field(OpenApiTypes.OBJECT)
class MetadataField(serializers.JSONField):
    """Any JSON object of the client's, given back equal."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse what is no object; change nothing. Raises: ValidationError."""
        if not isinstance(data, dict):
            raise serializers.ValidationError("This must be a JSON object.")
        return data


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectShape(serializers.JSONField):
    """A JSON object in an answer."""


class OptionsRequest(StrictSerializer):
    """How the content is composed, and what a kind needs beside its source."""

    max_sentences = StrictInteger(min_value=1, max_value=20, required=False)
    language = StrictText(max_length=35, required=False, allow_null=True)
    notify_url = WebAddress(
        required=False, help_text="Where a signed notification of the job's end is sent."
    )
    live_event = StrictText(
        max_length=40,
        required=False,
        help_text="Kinds live, digest: the event whose recording is awaited.",
    )
    audio_url = WebAddress(required=False, help_text="Kind digest: the recording, a WAV file.")


class JobRequest(StrictSerializer):
    """A request for content work."""

    kind = serializers.ChoiceField(choices=["article", "audio", "live", "digest"])
    source_url = WebAddress(
        required=False,
        help_text="The page (article, digest) or the recording (audio); kind live has none.",
    )
    options = OptionsRequest(required=False)
    metadata = MetadataField(required=False)
    priority = serializers.ChoiceField(
        choices=["realtime", "async", "distribution", "recovery"], required=False
    )

    def to_internal_value(self, data: Any) -> Any:
        """Check the body. Raises: Refusal when it is no object; ValidationError."""
        if not isinstance(data, Mapping):
            raise Refusal("validation", "The body must be a JSON object.")
        return super().to_internal_value(data)


class EmptyRequest(StrictSerializer):
    """A command without fields; the body may be absent or an empty object."""


class RotateRequest(EmptyRequest):
    """How a token is rotated; the body may be absent."""

    overlap_seconds = StrictInteger(
        min_value=0,
        max_value=int(OVERLAP_MAX.total_seconds()),
        required=False,
        help_text="How long the present token goes on working; a day if not given.",
    )


class RotatedShape(serializers.Serializer[Any]):
    """A new token, shown this once."""

    token = serializers.CharField()
    name = serializers.CharField()
    tenant = serializers.CharField(help_text="Empty for a token of the operators.")
    expires_at = serializers.DateTimeField(allow_null=True)
    replaced_expires_at = serializers.DateTimeField(
        help_text="When the token that made this call ends."
    )


class LinksShape(serializers.Serializer[Any]):
    """Where to go from here; an action is listed while it is possible."""

    self = serializers.URLField()
    retry = serializers.URLField(required=False)
    cancel = serializers.URLField(required=False)
    regenerate = serializers.URLField(required=False)
    choice = serializers.URLField(required=False)


class AcceptedShape(serializers.Serializer[Any]):
    """Answer of a 202: the committed state of the job."""

    id = serializers.CharField()
    status = serializers.ChoiceField(
        choices=["initial", "generating", "ready", "failed", "canceled"]
    )
    round = serializers.IntegerField(help_text="Number of the business round, raised by a retry.")
    links = LinksShape()


class WaitingShape(serializers.Serializer[Any]):
    """Why a job does not move right now."""

    reason = serializers.CharField()
    resource = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)
    position = serializers.IntegerField(
        required=False, help_text="Place in the line for a permit; 1 is next."
    )
    estimate = serializers.FloatField(
        required=False, help_text="Seconds, not sooner; where only a rate or a cooldown decides."
    )


class StepShape(serializers.Serializer[Any]):
    """One step of the workflow."""

    name = serializers.CharField()
    status = serializers.CharField()
    attempt = serializers.IntegerField()


class ProgressShape(serializers.Serializer[Any]):
    """How far the present round got."""

    done = serializers.IntegerField()
    total = serializers.IntegerField()
    steps = StepShape(many=True)


class ErrorShape(serializers.Serializer[Any]):
    """Why a job failed."""

    code = serializers.CharField()
    message = serializers.CharField()


class JobShape(AcceptedShape):
    """A job as the list shows it."""

    kind = serializers.CharField()
    source_url = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    error = ErrorShape(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class JobDetailShape(JobShape):
    """A job with everything known about it."""

    workflow_id = serializers.CharField()
    options = ObjectShape()
    metadata = ObjectShape()
    result = ObjectShape(allow_null=True)
    waiting = WaitingShape(allow_null=True)
    progress = ProgressShape(allow_null=True)


class JobPageShape(serializers.Serializer[Any]):
    """One page of a list."""

    results = JobShape(many=True)
    next = serializers.URLField(allow_null=True)


class PlaceShape(serializers.Serializer[Any]):
    """A place in the request and what is wrong there."""

    pointer = serializers.CharField()
    detail = serializers.CharField()


class ProblemShape(serializers.Serializer[Any]):
    """A refusal (RFC 9457)."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    request_id = serializers.CharField()
    retryable = serializers.BooleanField()
    errors = PlaceShape(many=True, required=False)  # type: ignore[assignment]


PRIORITIES: dict[str, Priority] = {
    "realtime": Priority.REALTIME,
    "async": Priority.ASYNC,
    "distribution": Priority.DISTRIBUTION,
    "recovery": Priority.RECOVERY,
}
