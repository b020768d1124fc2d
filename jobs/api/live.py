"""Live events: announce, start, end with a recording, call off.

Guarantees: each call sees the caller's tenant only; an answer is sent after the change is
committed, and the jobs that wait are woken after that. Leaves to others: what is allowed
(``jobs.services.live``).
"""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from jobs.api import paging
from jobs.api.answers import WITH_BODY, answer_headers, answers
from jobs.api.authentication import tenant_of
from jobs.api.checking import checked
from jobs.api.errors import Refusal
from jobs.api.presentation import moment
from jobs.api.serializers import EmptyRequest, StrictSerializer, StrictText, WebAddress
from jobs.models import LiveEvent, LiveStatus
from jobs.models.live import TITLE_CHARACTERS
from jobs.services import live

#: Statuses an event can be moved on from.
_OPEN = (LiveStatus.SCHEDULED, LiveStatus.LIVE)


class LiveEventRequest(StrictSerializer):
    """An event to be announced."""

    title = StrictText(max_length=TITLE_CHARACTERS)


class LiveEndRequest(StrictSerializer):
    """The end of an event."""

    recording_url = WebAddress(help_text="Where the recording is: a WAV file.")


class LiveLinksShape(serializers.Serializer[Any]):
    """Where to go from here; an action is listed while it is possible."""

    self = serializers.URLField()
    start = serializers.URLField(required=False)
    end = serializers.URLField(required=False)
    cancel = serializers.URLField(required=False)


class LiveEventShape(serializers.Serializer[Any]):
    """A live event."""

    id = serializers.CharField()
    title = serializers.CharField()
    status = serializers.CharField(help_text="scheduled, live, ended or canceled")
    recording_url = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    links = LiveLinksShape()


class LiveEventPageShape(serializers.Serializer[Any]):
    """One page of a list."""

    results = LiveEventShape(many=True)
    next = serializers.URLField(allow_null=True)


class LiveEventsView(APIView):
    """The tenant's events."""

    @extend_schema(
        operation_id="live_events_create",
        request=LiveEventRequest,
        parameters=answer_headers(201, "Location"),
        responses=answers({201: LiveEventShape}, *WITH_BODY),
    )
    def post(self, request: Request) -> Response:
        """Announce an event. It is watched from then on."""
        body = checked(LiveEventRequest, request)
        event = live.schedule(tenant_of(request), title=body["title"])
        shown = _shown(request, event)
        return Response(shown, status=201, headers={"Location": shown["links"]["self"]})

    @extend_schema(
        operation_id="live_events_list",
        parameters=[
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": paging.PAGE_ROWS_MAX}
            ),
            OpenApiParameter("cursor", str),
        ],
        responses=answers({200: LiveEventPageShape}, "bad-filter", "bad-cursor"),
    )
    def get(self, request: Request) -> Response:
        """List the newest events first. Follow ``next`` as it is."""
        query = request.query_params
        if set(query) - {"limit", "cursor"}:
            raise Refusal("bad-filter", "Unknown parameters; known are cursor, limit.")
        rows, cursor = paging.page_rows(query.get("limit")), query.get("cursor")
        after = None if cursor is None else paging.decode_cursor(cursor)
        found = live.list_events(tenant_of(request), after=after, limit=rows + 1)
        following = None
        if len(found) > rows:
            onward = query.copy()
            onward["cursor"] = paging.encode_cursor(found[rows - 1])
            following = request.build_absolute_uri(f"{request.path}?{onward.urlencode()}")
        shown = [_shown(request, event) for event in found[:rows]]
        return Response({"results": shown, "next": following})


class LiveEventView(APIView):
    """One event."""

    @extend_schema(
        operation_id="live_events_retrieve",
        responses=answers({200: LiveEventShape}, "not-found"),
    )
    def get(self, request: Request, event_id: str) -> Response:
        """Read an event."""
        return Response(_shown(request, live.get_event(tenant_of(request), event_id)))


class LiveStartView(APIView):
    """The beginning of an event."""

    @extend_schema(
        operation_id="live_events_start",
        request=EmptyRequest,
        responses=answers({200: LiveEventShape}, *WITH_BODY, "not-found", "event-closed"),
    )
    def post(self, request: Request, event_id: str) -> Response:
        """Note that the event has begun. On repeat: the same answer."""
        checked(EmptyRequest, request)
        return _moved(request, event_id, live.start)


class LiveEndView(APIView):
    """The end of an event."""

    @extend_schema(
        operation_id="live_events_end",
        request=LiveEndRequest,
        responses=answers({200: LiveEventShape}, *WITH_BODY, "not-found", "event-closed"),
    )
    def post(self, request: Request, event_id: str) -> Response:
        """Give the recording of an event that is over, and wake the jobs that wait for it.

        On repeat with the same recording: the same answer.
        """
        url = checked(LiveEndRequest, request)["recording_url"]
        return _moved(
            request, event_id, lambda tenant, event: live.end(tenant, event, recording_url=url)
        )


class LiveCancelView(APIView):
    """The end of an event that does not take place."""

    @extend_schema(
        operation_id="live_events_cancel",
        request=EmptyRequest,
        responses=answers({200: LiveEventShape}, *WITH_BODY, "not-found", "event-closed"),
    )
    def post(self, request: Request, event_id: str) -> Response:
        """Call an event off; jobs that wait for it fail and say why. On repeat: the same answer."""
        checked(EmptyRequest, request)
        return _moved(request, event_id, live.cancel)


def _moved(request: Request, event_id: str, move: Callable[[str, str], LiveEvent]) -> Response:
    return Response(_shown(request, move(tenant_of(request), event_id)))


def _shown(request: Request, event: LiveEvent) -> dict[str, Any]:
    names = {"self": "live-event"}
    if event.status in _OPEN:
        names |= {"end": "live-event-end", "cancel": "live-event-cancel"}
    if event.status == LiveStatus.SCHEDULED:
        names["start"] = "live-event-start"
    return {
        "id": event.pk,
        "title": event.title,
        "status": str(event.status),
        "recording_url": event.recording_url or None,
        "created_at": moment(event.created_at),
        "updated_at": moment(event.updated_at),
        "links": {
            name: reverse(route, args=[event.pk], request=request) for name, route in names.items()
        },
    }
