"""The business models; `jobs.services` is their only writer.

Guarantees: importing them imports no activity code. Leaves to others: every rule about when a
row changes.
"""

from jobs.models.access import ApiToken
from jobs.models.content import ArtifactKind, ContentArtifact, ContentJob, JobKind, JobStatus
from jobs.models.idempotency import IdempotencyKey
from jobs.models.notifications import Notification, NotificationStatus
from jobs.models.quota import QuotaEntry, QuotaState, TenantQuota
from jobs.models.rate import TenantBucket

__all__ = [
    "ApiToken",
    "ArtifactKind",
    "ContentArtifact",
    "ContentJob",
    "IdempotencyKey",
    "JobKind",
    "JobStatus",
    "Notification",
    "NotificationStatus",
    "QuotaEntry",
    "QuotaState",
    "TenantBucket",
    "TenantQuota",
]
