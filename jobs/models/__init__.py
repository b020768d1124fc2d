"""The business models; `jobs.services` is their only writer.

Guarantees: importing them imports no activity code. Leaves to others: every rule about when a
row changes.
"""

from jobs.models.access import ApiToken
from jobs.models.content import (
    ArtifactFile,
    ArtifactKind,
    ContentArtifact,
    ContentJob,
    JobKind,
    JobStatus,
)
from jobs.models.idempotency import IdempotencyKey
from jobs.models.live import LiveEvent, LiveStatus, LiveSubscription, WatchStatus
from jobs.models.notifications import Notification, NotificationStatus
from jobs.models.quota import QuotaEntry, QuotaState, TenantQuota
from jobs.models.rate import TenantBucket
from jobs.models.waiting import JobChoice, ProviderCallback

__all__ = [
    "ApiToken",
    "ArtifactFile",
    "ArtifactKind",
    "ContentArtifact",
    "ContentJob",
    "IdempotencyKey",
    "JobChoice",
    "JobKind",
    "JobStatus",
    "LiveEvent",
    "LiveStatus",
    "LiveSubscription",
    "Notification",
    "NotificationStatus",
    "ProviderCallback",
    "QuotaEntry",
    "QuotaState",
    "TenantBucket",
    "TenantQuota",
    "WatchStatus",
]
