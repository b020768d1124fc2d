"""The business writes of a running round; activities and finalizers write through these only.

Guarantees: every write is fenced by the round's number and its open statuses (I6), so a late
worker changes nothing; each may be repeated. What ends a round also moves its quota and announces
it, in the same transaction. Leaves to others: when to call which
(`jobs.activities`, `jobs.workflows`).
"""

from typing import Any

from django.db import transaction

from jobs.dispatch import FencedOutcome, FencedWrite, fenced_update
from jobs.dispatch.clock import db_now
from jobs.models import ArtifactKind, ContentArtifact, ContentJob, JobStatus
from jobs.models.content import OPEN_STATUSES
from jobs.services import notifications, quota
from jobs.services.texts import ERROR_CODE_CHARACTERS, ERROR_MESSAGE_CHARACTERS, storable

__all__ = [
    "enter_generating",
    "find_artifact",
    "finish_failed",
    "finish_ready",
    "get_artifact",
    "keep_artifact",
    "storable",
]


def enter_generating(job_id: str, fencing_token: int) -> None:
    """Put the job of an open round to `generating`; whichever step comes first in a round does it.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone.
    On repeat: the same.
    """
    _write(job_id, fencing_token, status=JobStatus.GENERATING).require()


def keep_artifact(
    job_id: str, fencing_token: int, *, kind: ArtifactKind, text: str, details: dict[str, Any]
) -> ContentArtifact:
    """Store what a step of this round made, in one transaction with the check of the round.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone; nothing is stored.
    On repeat: the artifact stored first is returned, unchanged.
    """
    with transaction.atomic():
        enter_generating(job_id, fencing_token)
        artifact, _ = ContentArtifact.objects.get_or_create(
            job_id=job_id,
            round=fencing_token,
            kind=kind,
            defaults={"text": storable(text), "details": details},
        )
    return artifact


def find_artifact(job_id: str, fencing_token: int, *, kind: ArtifactKind) -> ContentArtifact | None:
    """Find what a step of this round has made already."""
    return ContentArtifact.objects.filter(job_id=job_id, round=fencing_token, kind=kind).first()


def get_artifact(job_id: str, artifact_id: int) -> ContentArtifact | None:
    """Read an artifact of the job, of whatever round; None when it is gone."""
    return ContentArtifact.objects.filter(job_id=job_id, pk=artifact_id).first()


def finish_ready(
    job_id: str, fencing_token: int, *, title: str, result: dict[str, Any]
) -> FencedWrite:
    """Give the job its result, end it and settle the round, in one transaction.

    On repeat: `already`; the first result stays, and what the ledger should say is verified.
    """
    with transaction.atomic():
        write = _write(
            job_id,
            fencing_token,
            status=JobStatus.READY,
            title=storable(title),
            result=result,
            finished_at=db_now(),
        )
        if write.done:
            quota.settle(job_id, fencing_token)
        if write.outcome is FencedOutcome.WRITTEN:
            notifications.announce(job_id)
    return write


def finish_failed(job_id: str, fencing_token: int, *, code: str, message: str) -> FencedWrite:
    """End the job as failed and refund the round, in one transaction.

    On repeat: `already`, and the ledger is verified. A job that is ready stays so (`closed`).
    """
    with transaction.atomic():
        write = _write(
            job_id,
            fencing_token,
            status=JobStatus.FAILED,
            error_code=storable(code)[:ERROR_CODE_CHARACTERS],
            error_message=storable(message)[:ERROR_MESSAGE_CHARACTERS],
            finished_at=db_now(),
        )
        if write.done:
            quota.refund(job_id, fencing_token)
        if write.outcome is FencedOutcome.WRITTEN:
            notifications.announce(job_id)
    return write


def _write(job_id: str, fencing_token: int, **changes: Any) -> FencedWrite:
    return fenced_update(
        ContentJob,
        job_id,
        fencing_token,
        from_status=OPEN_STATUSES,
        updated_at=db_now(),
        **changes,
    )
