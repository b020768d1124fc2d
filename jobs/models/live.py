"""LiveEvent: something that is going to be broadcast; LiveSubscription: a job that waits for it.

Guarantees: an event and the intent of the workflow that watches it are one row, so an accepted
event is watched. `status` is the organiser's, `watch_status` the workflow's. Leaves to others: all
writes (`jobs.services.live`).
"""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone

from jobs.dispatch import DispatchMixin, StatusMapping
from jobs.models.access import TENANT_CHARACTERS
from jobs.models.content import ContentJob
from jobs.plans import URL_CHARACTERS, WATCH

TITLE_CHARACTERS = 300


class LiveStatus(models.TextChoices):
    """Where an event stands."""

    SCHEDULED = "scheduled"
    LIVE = "live"
    ENDED = "ended"
    CANCELED = "canceled"


class WatchStatus(models.TextChoices):
    """How the workflow that watches an event fares."""

    WATCHING = "watching"
    DONE = "done"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


def new_event_id() -> str:
    """Make a fresh, unguessable id; its prefix tells people what it names."""
    return f"live_{uuid.uuid4().hex}"


class LiveEvent(DispatchMixin):
    """An event of a tenant; its recording is there once it has ended."""

    dispatch_mapping = StatusMapping(
        column="watch_status",
        initial=WatchStatus.WATCHING,
        failed=WatchStatus.FAILED,
        canceled=WatchStatus.WITHDRAWN,
        terminal=frozenset({WatchStatus.DONE, WatchStatus.FAILED, WatchStatus.WITHDRAWN}),
    )
    dispatch_plans = (WATCH,)

    id = models.CharField(primary_key=True, max_length=40, default=new_event_id, editable=False)
    tenant = models.SlugField(max_length=TENANT_CHARACTERS, db_index=False)
    title = models.CharField(max_length=TITLE_CHARACTERS)
    status = models.CharField(
        max_length=16, choices=LiveStatus.choices, default=LiveStatus.SCHEDULED
    )
    watch_status = models.CharField(
        max_length=16, choices=WatchStatus.choices, default=WatchStatus.WATCHING, editable=False
    )
    #: Where the recording is; empty until the event has ended.
    recording_url = models.CharField(max_length=URL_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta(DispatchMixin.Meta):
        """An index for keyset lists by tenant, on top of the intent's own."""

        indexes: ClassVar[list[models.Index]] = [
            *DispatchMixin.Meta.indexes,
            models.Index(fields=["tenant", "-created_at", "-id"], name="liveevent_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.status})"

    def dispatch_key(self) -> str:
        """Name the watch by tenant and event."""
        return f"{WATCH.type}:{self.tenant}:{self.id}"

    def dispatch_payload(self) -> Mapping[str, Any]:
        """Give the watch the event's identity; it reads the rest when it looks."""
        return {"event_id": self.id, "tenant": self.tenant}


class LiveSubscription(models.Model):
    """A job that is to be woken when its event is over; written with the job."""

    event = models.ForeignKey(LiveEvent, on_delete=models.CASCADE, related_name="subscriptions")
    job = models.OneToOneField(ContentJob, on_delete=models.CASCADE, related_name="subscription")

    class Meta:
        """The fan-out pages by event and id."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["event", "id"], name="subscription_page")
        ]

    def __str__(self) -> str:
        return f"{self.job_id} waits for {self.event_id}"
