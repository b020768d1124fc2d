"""Content jobs as clients and operators see them: submit, retry, cancel, read.

Guarantees: every answer follows from a committed row; what has to happen outside the database is
asked for in the same write and happens after the commit, or later. Another tenant's job does not
exist. Leaves to others: the writes of running workflows (`jobs.services.rounds`), and HTTP.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from jobs.dispatch import CancelOutcome, cancel, install, new_round
from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, JobStatus
from jobs.models.content import OPEN_STATUSES
from jobs.services.entry import check_entry
from jobs.services.errors import AlreadyTerminal, JobNotFound, NotRetryable, RoundInProgress
from kernel import Priority

#: Most rows one page of a list may have.
LIST_LIMIT_MAX = 200


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
    """Accept a job: one insert, with its intent to run.

    Raises:
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
    install(job, priority=priority)
    return job


def retry_job(tenant: str, job_id: str) -> ContentJob:
    """Start the next round of a failed job, keeping what its steps completed.

    Raises:
        JobNotFound: no such job.
        NotRetryable: the job is ready or canceled.
        RoundInProgress: a round is under way; of two racing retries one gets this.
    """
    job = get_job(tenant, job_id)
    if job.status == JobStatus.FAILED and new_round(job, updated_at=db_now()) is not None:
        return get_job(tenant, job_id)
    status = get_job(tenant, job_id).status
    if status in {*OPEN_STATUSES, JobStatus.FAILED}:
        # Failed here: the round this caller lost to has failed again already.
        raise RoundInProgress(status)
    raise NotRetryable(status)


def cancel_job(tenant: str, job_id: str) -> ContentJob:
    """End a job that is not over, and the workflow behind it.

    Raises:
        JobNotFound: no such job.
        AlreadyTerminal: the job is ready or failed.
    On repeat: the same answer.
    """
    get_job(tenant, job_id)
    outcome = cancel(ContentJob, job_id, updated_at=db_now(), finished_at=db_now())
    job = get_job(tenant, job_id)
    if outcome is CancelOutcome.OVER:
        raise AlreadyTerminal(job.status)
    return job


def get_job(tenant: str, job_id: str) -> ContentJob:
    """Read one job of a tenant. Raises: JobNotFound, also for an id that could be none."""
    if "\x00" in job_id or not job_id.isascii():
        raise JobNotFound(job_id)
    job = ContentJob.objects.filter(tenant=tenant, pk=job_id).first()
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
    jobs = ContentJob.objects.filter(tenant=tenant)
    if status is not None:
        jobs = jobs.filter(status=status)
    if after is not None:
        created_at, job_id = after
        jobs = jobs.filter(created_at__lte=created_at).exclude(
            created_at=created_at, id__gte=job_id
        )
    return list(jobs.order_by("-created_at", "-id")[: max(1, min(limit, LIST_LIMIT_MAX))])
