"""Shapes of the capacity calls: what a change may say, and how a resource is shown.

Guarantees: numbers are JSON numbers (no text, no booleans) inside their bounds, a change says why;
times are RFC 3339 in UTC. Leaves to others: what a limit does (``kernel.capacity``).
"""

import math
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs.api.presentation import moment
from jobs.api.serializers import ObjectShape, StrictInteger, StrictSerializer, StrictText
from kernel import ResourceStatus

#: Bounds of what an operator may ask for; 0 and null mean unlimited.
CONCURRENCY_MAX = 1_000_000
STARTS_PER_SECOND_MAX = 10_000.0
#: The slowest rate that is one: a start in about three hours.
STARTS_PER_SECOND_MIN = 0.0001
#: Longest override or cooldown, seconds; what is meant for good is set without an end.
SECONDS_MAX = 30 * 24 * 3600
REASON_CHARACTERS = 500


class StrictNumber(serializers.FloatField):
    """A number that is written as one, and finite."""

    def to_internal_value(self, data: Any) -> float:
        """Refuse text, booleans and what is no finite number. Raises: ValidationError."""
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class ReasonField(StrictText):
    """Why something is changed, for whoever reads the history at night."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=REASON_CHARACTERS, **options)

    def to_internal_value(self, data: Any) -> str:
        """Refuse what says nothing. Raises: ValidationError."""
        text = super().to_internal_value(data).strip()
        if not text:
            self.fail("blank")
        return text


class ReasonRequest(StrictSerializer):
    """A pause or its end."""

    reason = ReasonField(help_text="Why; kept in the history.")


class CooldownRequest(ReasonRequest):
    """A closing for a while."""

    seconds = StrictNumber(
        min_value=0, max_value=SECONDS_MAX, help_text="A longer one in force stays; 0 ends it."
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "number", "enum": [0]},
            {
                "type": "number",
                "minimum": STARTS_PER_SECOND_MIN,
                "maximum": STARTS_PER_SECOND_MAX,
            },
            {"type": "null"},
        ]
    }
)
class RateField(StrictNumber):
    """Starts a second; null and 0 are none."""

    def to_internal_value(self, data: Any) -> float:
        """Refuse a rate too slow to be one. Raises: ValidationError."""
        rate = super().to_internal_value(data)
        if 0 < rate < STARTS_PER_SECOND_MIN:
            raise serializers.ValidationError(f"Give 0 or at least {STARTS_PER_SECOND_MIN}.")
        return rate


class LimitRequest(ReasonRequest):
    """New limits; what is left out stays as it is, null and 0 mean unlimited."""

    max_concurrency = StrictInteger(
        min_value=0, max_value=CONCURRENCY_MAX, required=False, allow_null=True
    )
    max_starts_per_second = RateField(
        min_value=0, max_value=STARTS_PER_SECOND_MAX, required=False, allow_null=True
    )
    expires_in = StrictNumber(
        min_value=0.001,
        max_value=SECONDS_MAX,
        required=False,
        help_text="Seconds after which the limits before this change hold again.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a change of nothing. Raises: ValidationError."""
        if not {"max_concurrency", "max_starts_per_second"} & set(attrs):
            raise serializers.ValidationError("Give max_concurrency or max_starts_per_second.")
        return attrs


class HolderShape(serializers.Serializer[Any]):
    """A permit that is out."""

    workflow_id = serializers.CharField()
    step = serializers.CharField(allow_null=True, help_text="Null: held for the whole claim.")
    since = serializers.DateTimeField()
    expires = serializers.DateTimeField(help_text="When it ends unless it is renewed.")


class WaiterShape(serializers.Serializer[Any]):
    """A workflow in the line."""

    workflow_id = serializers.CharField()
    step = serializers.CharField(allow_null=True)
    priority = serializers.IntegerField()
    since = serializers.DateTimeField()
    position = serializers.IntegerField(help_text="1 is next.")


class LimitChangeShape(serializers.Serializer[Any]):
    """One change of a resource, by whom and why."""

    at = serializers.DateTimeField()
    by = serializers.CharField()
    reason = serializers.CharField()
    change = ObjectShape(help_text="Each changed field with its new value.")


class ResourceShape(serializers.Serializer[Any]):
    """A resource as the list shows it."""

    resource = serializers.CharField()
    revision = serializers.IntegerField()
    max_concurrency = serializers.IntegerField(allow_null=True, help_text="Null: unlimited.")
    max_starts_per_second = serializers.FloatField(allow_null=True, help_text="Null: unlimited.")
    paused = serializers.BooleanField()
    cooldown_until = serializers.DateTimeField(allow_null=True)
    override_until = serializers.DateTimeField(allow_null=True)
    used = serializers.IntegerField()
    reserved = serializers.IntegerField(help_text="Permits on their way to their next holder.")
    waiting = serializers.IntegerField()
    granted = serializers.IntegerField()
    refused = serializers.IntegerField()
    next_start_at = serializers.DateTimeField(allow_null=True)
    now = serializers.DateTimeField(help_text="The database's clock, which judges all of this.")
    links = serializers.DictField(child=serializers.URLField())


class ResourceDetailShape(ResourceShape):
    """A resource with its holders, its line and its history."""

    holders = HolderShape(many=True)
    waiters = WaiterShape(many=True, help_text="The first hundred.")
    history = LimitChangeShape(many=True, help_text="The newest fifty, newest first.")


class ResourcePageShape(serializers.Serializer[Any]):
    """One page of the list."""

    results = ResourceShape(many=True)
    next = serializers.URLField(allow_null=True)


def summary(status: ResourceStatus) -> dict[str, Any]:
    """Shape a resource for the list; links are the view's."""
    return {
        "resource": status.resource,
        "revision": status.revision,
        "max_concurrency": status.max_concurrency or None,
        "max_starts_per_second": status.max_starts_per_second or None,
        "paused": status.paused,
        "cooldown_until": moment(status.cooldown_until),
        "override_until": moment(status.override_until),
        "used": status.used,
        "reserved": status.reserved,
        "waiting": status.waiting,
        "granted": status.granted,
        "refused": status.refused,
        "next_start_at": moment(status.next_start_at),
        "now": moment(status.now),
    }


def _plain(value: object) -> object:
    return moment(value) if isinstance(value, datetime) else value


def detail(status: ResourceStatus) -> dict[str, Any]:
    """Shape a resource with everything known about it."""
    return {
        **summary(status),
        "holders": [
            {
                "workflow_id": holder.workflow_id,
                "step": holder.step,
                "since": moment(holder.since),
                "expires": moment(holder.expires),
            }
            for holder in status.holders
        ],
        "waiters": [
            {
                "workflow_id": waiter.workflow_id,
                "step": waiter.step,
                "priority": int(waiter.priority),
                "since": moment(waiter.since),
                "position": waiter.position,
            }
            for waiter in status.waiters
        ],
        "history": [
            {
                "at": moment(entry.at),
                "by": entry.by,
                "reason": entry.reason,
                "change": {name: _plain(value) for name, value in entry.change.items()},
            }
            for entry in reversed(status.history)
        ],
    }
