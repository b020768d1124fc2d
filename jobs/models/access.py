"""Who may call the API for which tenant.

Guarantees: the token itself is never stored, only its SHA-256. Leaves to others: issuing,
checking and revoking (`jobs.services.access`).
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

#: Characters of a tenant's slug.
TENANT_CHARACTERS = 64


class ApiToken(models.Model):
    """A bearer token of one tenant, acting as one user."""

    name = models.CharField(max_length=100)
    tenant = models.SlugField(max_length=TENANT_CHARACTERS)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    #: Hex SHA-256 of the token.
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: The token a rotation issued in this one's place.
    replaced_by = models.ForeignKey(
        "self", null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        """Newest first."""

        ordering: ClassVar[list[str]] = ["-created_at", "-id"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.tenant})"
