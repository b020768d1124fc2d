"""Notification: the end of a job's round, on its way to the address the client named.

Guarantees: at most one row per job and round, with the bytes that are sent in it, so that every
attempt says the same. A row carries its own dispatch intent: a receiver that is broken never
touches the job. Leaves to others: all writes (`jobs.services.notifications`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone

from jobs.dispatch import DispatchMixin, ExactJSONField, StatusMapping
from jobs.models.access import TENANT_CHARACTERS
from jobs.models.content import ContentJob
from jobs.plans import NOTIFY, URL_CHARACTERS


class NotificationStatus(models.TextChoices):
    """Where a notification stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELED = "canceled"


def notification_id(job_id: str, job_round: int) -> str:
    """Name the notification of a round; the receiver recognises a repeat by it."""
    return f"ntf_{job_id.removeprefix('job_')}_{job_round}"


class Notification(DispatchMixin):
    """One message to one address about the end of one round."""

    dispatch_mapping = StatusMapping(
        initial=NotificationStatus.WAITING,
        failed=NotificationStatus.FAILED,
        canceled=NotificationStatus.CANCELED,
        terminal=frozenset(
            {
                NotificationStatus.DELIVERED.value,
                NotificationStatus.FAILED.value,
                NotificationStatus.CANCELED.value,
            }
        ),
        cleared=MappingProxyType(
            {"answer": None, "error_code": "", "error_message": "", "finished_at": None}
        ),
    )
    dispatch_plans = (NOTIFY,)

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    tenant = models.SlugField(max_length=TENANT_CHARACTERS, db_index=False)
    job = models.ForeignKey(ContentJob, on_delete=models.CASCADE, related_name="notifications")
    url = models.CharField(max_length=URL_CHARACTERS)
    #: What is sent, built when the round ended.
    body = ExactJSONField(default=dict)
    status = models.CharField(
        max_length=16, choices=NotificationStatus.choices, default=NotificationStatus.WAITING
    )
    #: HTTP status the receiver took it with.
    answer = models.SmallIntegerField(null=True)
    error_code = models.CharField(max_length=64, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    class Meta(DispatchMixin.Meta):
        """Found by tenant, newest first."""

        indexes: ClassVar[list[models.Index]] = [
            *DispatchMixin.Meta.indexes,
            models.Index(fields=["tenant", "-created_at", "-id"], name="notification_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    def dispatch_key(self) -> str:
        """Name the workflow by tenant and notification, so by job and round."""
        return f"{self.dispatch_plan().type}:{self.tenant}:{self.pk}"

    def dispatch_payload(self) -> Mapping[str, Any]:
        """Give the workflow the row's name; the row has the rest."""
        return {"notification_id": self.pk, "tenant": self.tenant}
