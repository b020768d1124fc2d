"""IdempotencyKey: what a request under a client's key was answered with.

Guarantees: a committed row is complete, because it is written in one transaction with what the
request did; one row per tenant, user, operation and key. Leaves to others: claiming, answering and
forgetting (`jobs.services.idempotency`).
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from jobs.models.access import TENANT_CHARACTERS

#: Characters of a client's key.
KEY_CHARACTERS = 255


class IdempotencyKey(models.Model):
    """One request that was answered, and its answer."""

    tenant = models.SlugField(max_length=TENANT_CHARACTERS, db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    #: Which call, e.g. `jobs_create`.
    operation = models.CharField(max_length=40)
    key = models.CharField(max_length=KEY_CHARACTERS)
    #: Hex SHA-256 of method, path and canonical body.
    fingerprint = models.CharField(max_length=64)
    #: The job the request was about; its key is kept while it is open.
    job_id = models.CharField(max_length=40, default="")
    status = models.PositiveSmallIntegerField(default=0)
    location = models.TextField(default="")
    #: The answer's body as it was sent, ASCII.
    body = models.TextField(default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """The constraint is the claim; the index serves forgetting."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "user", "operation", "key"], name="idempotency_key_once"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["created_at"], name="idempotency_by_age")
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.key} ({self.tenant})"
