"""Who may call the API: for a tenant, or as an operator of the whole deployment.

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
    """A bearer token, acting as one user: of one tenant, or of the operators and of no tenant."""

    name = models.CharField(max_length=100)
    #: Empty for a token of the operators.
    tenant = models.SlugField(max_length=TENANT_CHARACTERS, blank=True)
    #: May see and change the deployment's capacity; sees nothing of any tenant.
    ops = models.BooleanField(default=False, editable=False)
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
        #: For console sessions; a token of the operators has both.
        permissions = (
            ("view_capacity", "Can see capacity limits and who waits for them"),
            ("change_capacity", "Can change capacity limits"),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.tenant or 'operators'})"
