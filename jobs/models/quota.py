"""What a tenant may have done, and the ledger that says what became of each round.

Guarantees: one entry per job and round; a tenant's counters always equal the sum of its entries,
because both change in one transaction (`jobs.services.quota`). Leaves to others: every write.
Design 7.
"""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from jobs.models.access import TENANT_CHARACTERS


class TenantQuota(models.Model):
    """A tenant's limit and the two counters it is held against."""

    tenant = models.SlugField(primary_key=True, max_length=TENANT_CHARACTERS)
    #: Rounds that may be reserved and settled together; NULL is unlimited.
    limit = models.BigIntegerField(null=True)
    #: Rounds under way.
    reserved = models.BigIntegerField(default=0)
    #: Rounds that ended ready, since the tenant's first one.
    settled = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """The database itself refuses counters below zero."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(reserved__gte=0, settled__gte=0), name="tenantquota_not_negative"
            )
        ]
        verbose_name_plural = "tenant quotas"

    def __str__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {self.limit}"
        return f"{self.tenant}: {self.reserved} reserved, {self.settled} settled, {limit}"


class QuotaState(models.TextChoices):
    """What became of a reserved round; the last two are final."""

    RESERVED = "reserved"
    SETTLED = "settled"
    REFUNDED = "refunded"


class QuotaEntry(models.Model):
    """One round of one job in the ledger; it outlives the job."""

    tenant = models.SlugField(max_length=TENANT_CHARACTERS, db_index=False)
    job_id = models.CharField(max_length=40)
    round = models.BigIntegerField()
    state = models.CharField(max_length=16, choices=QuotaState.choices, default=QuotaState.RESERVED)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    #: When it was settled or refunded.
    decided_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        """One entry per job and round."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job_id", "round"], name="quotaentry_once_per_round")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "state"], name="quotaentry_by_tenant")
        ]
        verbose_name_plural = "quota ledger"

    def __str__(self) -> str:
        return f"{self.job_id}, round {self.round}: {self.state}"
