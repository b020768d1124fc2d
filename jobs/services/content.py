"""Content jobs as clients and operators see them: submit, retry, regenerate, cancel, read.

Guarantees: every answer follows from a committed row; what has to happen outside the database is
asked for in the same write and happens after the commit, or later; the quota moves in the same
transaction. Another tenant's job does not exist, nor does a deleted one (`deleting`). Leaves to
others: the writes of running workflows (`jobs.services.rounds`), and HTTP.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q

from jobs.dispatch import CancelOutcome, DispatchStatus, cancel, install, new_generation, new_round
from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, JobStatus
from jobs.models.content import OPEN_STATUSES
from jobs.services import live, notifications, quota
from jobs.services.entry import LIVE_EVENT, check_entry
from jobs.services.errors import (
    AlreadyTerminal,
    InvalidRequest,
    JobNotFound,
    NotRetryable,
    Problem,
    RoundInProgress,
)
from kernel import Priority

#: Most rows one page of a list may have.
LIST_LIMIT_MAX = 200
#: What must hold of a row beside the caller's belief: nobody has deleted the job meanwhile.
NOT_DELETED = Q(deleted_at__isnull=True)


def submit_job(
    *,
    tenant: str,
    kind: str,
    source_url: str,
    options: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    priority: Priority = Priority.ASYNC,
    created_by: AbstractBaseUser | None = None,
) -> ContentJob:
    """Accept a job: one insert, with its intent to run, and its place in the quota.

    Raises:
        QuotaExceeded: the tenant may have no further round now; nothing was written.
        InvalidRequest: kind, URL or options cannot be accepted.
        InvalidValue: metadata holds what JSON storage cannot give back equal.
        ValueTooLarge: the request is larger than a workflow's input may be.
    On repeat: another job.
    """
    entry = check_entry(
        tenant=tenant, kind=kind, source_url=source_url, options=options, metadata=metadata
    )
    job = ContentJob(
        tenant=tenant,
        kind=entry.kind,
        source_url=entry.source_url,
        options=entry.options,
        metadata=entry.metadata,
        created_by_id=None if created_by is None else created_by.pk,
    )
    event_id = entry.options.get(LIVE_EVENT)
    if event_id is not None and live.find_event(tenant, event_id) is None:
        problem = Problem(pointer=f"/options/{LIVE_EVENT}", detail="There is no such live event.")
        raise InvalidRequest([problem])
    with transaction.atomic():
        intent = install(job, priority=priority)
        quota.reserve(tenant, job.pk, intent.fencing_token)
        if event_id is not None:
            live.subscribe(job, event_id)
    return job


def retry_job(tenant: str, job_id: str) -> ContentJob:
    """Start the next round of a failed job, keeping what its steps completed.

    Raises:
        JobNotFound: no such job.
        NotRetryable: the job is ready or canceled, or its round was refused; it can be regenerated.
        RoundInProgress: a round is under way; of two racing retries one gets this.
        QuotaExceeded: the tenant may have no further round now; nothing was written.
    """
    job = get_job(tenant, job_id)
    if job.status == JobStatus.FAILED:
        with transaction.atomic():
            intent = new_round(job, where=NOT_DELETED, updated_at=db_now())
            if intent is not None:
                quota.reserve(tenant, job_id, intent.fencing_token)
        if intent is not None:
            return get_job(tenant, job_id)
    job = get_job(tenant, job_id)
    if job.dispatch_status == DispatchStatus.REFUSED:
        raise NotRetryable("refused")
    if job.status in {*OPEN_STATUSES, JobStatus.FAILED}:
        # Failed here: the round this caller lost to has failed again already.
        raise RoundInProgress(job.status)
    raise NotRetryable(job.status)


def regenerate_job(tenant: str, job_id: str) -> ContentJob:
    """Do a job over from the start that is ready, failed or canceled, or whose round was refused.

    The result of the old generation is cleared; nothing of its steps is used again.

    Raises:
        JobNotFound: no such job.
        RoundInProgress: a round is under way, or a cancel has not been carried out yet; of two
            racing calls one gets this.
        QuotaExceeded: the tenant may have no further round now; nothing was written.
    """
    job = get_job(tenant, job_id)
    with transaction.atomic():
        intent = new_generation(job, where=NOT_DELETED, updated_at=db_now())
        if intent is not None:
            # Only a refused round still has something reserved here, and it comes to nothing.
            quota.refund(job_id, job.round)
            quota.reserve(tenant, job_id, intent.fencing_token)
    renewed = get_job(tenant, job_id)
    if intent is None:
        raise RoundInProgress(renewed.status)
    return renewed


def cancel_job(tenant: str, job_id: str) -> ContentJob:
    """End a job that is not over, and the workflow behind it.

    Raises:
        JobNotFound: no such job.
        AlreadyTerminal: the job is ready or failed.
    On repeat: the same answer.
    """
    with transaction.atomic():
        get_job(tenant, job_id)
        outcome = cancel(ContentJob, job_id, updated_at=db_now(), finished_at=db_now())
        job = get_job(tenant, job_id)
        if job.status == JobStatus.CANCELED:
            quota.refund(job_id, job.round)
        if outcome is CancelOutcome.CANCELED:
            notifications.announce(job_id)
    if outcome is CancelOutcome.OVER:
        raise AlreadyTerminal(job.status)
    return job


def get_job(tenant: str, job_id: str) -> ContentJob:
    """Read one job of a tenant. Raises: JobNotFound, also for an id that could be none."""
    if "\x00" in job_id or not job_id.isascii():
        raise JobNotFound(job_id)
    job = ContentJob.objects.filter(NOT_DELETED, tenant=tenant, pk=job_id).first()
    if job is None:
        raise JobNotFound(job_id)
    return job


def list_jobs(
    tenant: str,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int = 50,
    status: str | None = None,
) -> list[ContentJob]:
    """List a tenant's jobs, newest first; `after` is (created_at, id) of the last one seen.

    Rows created meanwhile neither repeat nor hide others. `limit` is cut to 1..200.
    """
    jobs = ContentJob.objects.filter(NOT_DELETED, tenant=tenant)
    if status is not None:
        jobs = jobs.filter(status=status)
    if after is not None:
        created_at, job_id = after
        jobs = jobs.filter(created_at__lte=created_at).exclude(
            created_at=created_at, id__gte=job_id
        )
    return list(jobs.order_by("-created_at", "-id")[: max(1, min(limit, LIST_LIMIT_MAX))])
