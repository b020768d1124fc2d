"""Who is told of a round's end, and what became of telling them.

Guarantees: a notification is inserted in the transaction that ends the round, so it exists exactly
when the round has ended and its client wanted to know; it is delivered by a workflow of its own and
can neither delay nor change the job. Leaves to others: sending (`jobs.activities.notify`).
"""

from datetime import UTC
from typing import Any

from jobs.dispatch import FencedWrite, fenced_update, install, new_round
from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, Notification, NotificationStatus
from jobs.models.content import NOTIFY_URL
from jobs.models.notifications import notification_id
from jobs.services.errors import JobNotFound, NotRetryable
from jobs.services.texts import ERROR_CODE_CHARACTERS, ERROR_MESSAGE_CHARACTERS, storable
from kernel import Priority


def announce(job_id: str) -> None:
    """Tell whoever wanted to know that the job's round has ended, once this transaction commits.

    Called in the transaction that ended the round, and only by the call that ended it.
    """
    job = ContentJob.objects.get(pk=job_id)
    url = job.options.get(NOTIFY_URL)
    if not url:
        return
    pk = notification_id(job.pk, job.round)
    install(
        Notification(id=pk, tenant=job.tenant, job=job, url=url, body=_body(pk, job)),
        priority=Priority.DISTRIBUTION,
    )


def find(pk: str) -> Notification | None:
    """Read a notification; None when it is gone."""
    return Notification.objects.filter(pk=pk).first()


def list_of_job(tenant: str, job_id: str) -> list[Notification]:
    """List the notifications of one job of a tenant, by round."""
    found = Notification.objects.filter(tenant=tenant, job_id=job_id, job__deleted_at=None)
    return list(found.order_by("created_at", "id"))


def finish_delivered(pk: str, fencing_token: int, *, answer: int) -> FencedWrite:
    """Note that the receiver took it. On repeat: `already`."""
    return _write(pk, fencing_token, status=NotificationStatus.DELIVERED, answer=answer)


def finish_failed(pk: str, fencing_token: int, *, code: str, message: str) -> FencedWrite:
    """Note that no attempt got through. On repeat: `already`; a delivered one stays so."""
    return _write(
        pk,
        fencing_token,
        status=NotificationStatus.FAILED,
        error_code=storable(code)[:ERROR_CODE_CHARACTERS],
        error_message=storable(message)[:ERROR_MESSAGE_CHARACTERS],
    )


def redeliver(tenant: str, pk: str) -> Notification:
    """Try a failed notification again, with the same bytes.

    Raises:
        JobNotFound: the tenant has no such notification.
        NotRetryable: it has not failed.
    """
    row = Notification.objects.filter(tenant=tenant, pk=pk).first()
    if row is None:
        raise JobNotFound(pk)
    if new_round(row) is None:
        raise NotRetryable(Notification.objects.get(pk=pk).status)
    return Notification.objects.get(pk=pk)


def _body(pk: str, job: ContentJob) -> dict[str, Any]:
    """Build what is sent: what happened and to which job; results are fetched from the API."""
    assert job.finished_at is not None, "a round ends with its time"
    ended = job.finished_at.astimezone(UTC).isoformat(timespec="milliseconds")
    error = {"code": job.error_code, "message": job.error_message} if job.error_code else None
    return {
        "id": pk,
        "type": f"job.{job.status}",
        "created_at": ended.replace("+00:00", "Z"),
        "job": {
            "id": job.pk,
            "kind": job.kind,
            "status": job.status,
            "round": job.round,
            "source_url": job.source_url,
            "title": job.title or None,
            "error": error,
            "metadata": job.metadata,
        },
    }


def _write(pk: str, fencing_token: int, **changes: Any) -> FencedWrite:
    return fenced_update(
        Notification,
        pk,
        fencing_token,
        from_status=NotificationStatus.WAITING,
        finished_at=db_now(),
        **changes,
    )
