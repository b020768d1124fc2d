"""Delete a job: gone for its tenant at once, gone from the database once nothing runs for it.

    open ──delete──▶ canceled, withdrawing, deleted ──withdrawn──▶ purged
    over ──delete──▶ deleted ──────────────────────────────────────▶ purged

Guarantees: one write decides; a deleted job is never started again. Ledger entries stay. Leaves to
others: when to purge (`manage.py purge_deleted`).
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q

from jobs.dispatch import CancelOutcome, cancel
from jobs.dispatch.clock import db_now
from jobs.dispatch.states import UNDELIVERED
from jobs.dispatch.transitions import rows
from jobs.models import ContentJob, Notification, NotificationStatus
from jobs.models.content import TERMINAL_STATUSES
from jobs.services import quota
from jobs.services.content import NOT_DELETED, get_job
from jobs.services.errors import RoundInProgress

#: How often a delete looks again at a job that somebody regenerates at the same moment.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What one purge did."""

    #: Rows that are gone now.
    gone: int
    #: Rows that came to life between being found and being deleted; the next purge sees them.
    kept: int


def delete_job(tenant: str, job_id: str) -> None:
    """Delete a job of any status; one that is open is canceled by the same write.

    Raises:
        JobNotFound: no such job; also on repeat.
        RoundInProgress: others started rounds faster than this could end them.
    """
    for _ in range(_ATTEMPTS):
        with transaction.atomic():
            round_read = get_job(tenant, job_id).round
            now = db_now()
            outcome = cancel(ContentJob, job_id, deleted_at=now, updated_at=now, finished_at=now)
            if outcome is CancelOutcome.CANCELED:
                quota.refund(job_id, rows(ContentJob).get(pk=job_id).round)
                return
            over = rows(ContentJob).filter(
                NOT_DELETED, pk=job_id, tenant=tenant, status__in=TERMINAL_STATUSES
            )
            if over.update(deleted_at=now, updated_at=now):
                return
    raise RoundInProgress(f"in round {round_read} or later")


def purge_deleted(*, older_than: timedelta, limit: int = 1000) -> Purged:
    """Delete the rows of jobs that were deleted `older_than` ago, at most `limit` of them.

    A job waits while its withdrawal or a notification of it is still under way. On repeat: the
    next ones.
    """
    telling = Notification.objects.filter(job_id=OuterRef("pk")).filter(
        Q(dispatch_status__in=UNDELIVERED) | Q(status=NotificationStatus.WAITING)
    )
    quiet = (
        ContentJob.objects.filter(~Exists(telling), deleted_at__lte=db_now(-older_than))
        .exclude(dispatch_status__in=UNDELIVERED)
        .order_by("deleted_at", "pk")
    )
    gone = kept = 0
    for job in quiet[:limit]:
        try:
            job.delete()
        except ProtectedError:
            kept += 1
        else:
            gone += 1
    return Purged(gone=gone, kept=kept)
