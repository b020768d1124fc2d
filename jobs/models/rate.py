"""TenantBucket: how much a tenant has called lately.

Guarantees: nothing by itself; a row is moved by one conditional update
(`jobs.services.rate`). Leaves to others: rates (settings) and answers (`jobs.api.throttling`).
"""

from django.db import models

from jobs.models.access import TENANT_CHARACTERS


class TenantBucket(models.Model):
    """A tenant's bucket of calls, as the one moment at which it will be full again."""

    tenant = models.SlugField(primary_key=True, max_length=TENANT_CHARACTERS)
    full_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tenant}, full at {self.full_at}"
