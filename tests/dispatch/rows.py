"""Rows in the states tests start from, and looking at them past every guard."""

from typing import Any

from jobs.dispatch import install
from jobs.models import ContentJob

URL = "https://example.org/article"


def new_job(**fields: Any) -> ContentJob:
    """Install a fresh job: pending, round 1."""
    job = ContentJob(
        tenant="acme",
        kind="article",
        source_url=URL,
        options={"max_sentences": 3, "language": None},
        **fields,
    )
    install(job)
    return job


def force(job: ContentJob, **columns: Any) -> None:
    """Write columns past the protocol, as a hand-made repair or a restored backup would."""
    ContentJob._base_manager.filter(pk=job.pk).update(**columns)


def stored(job: ContentJob) -> ContentJob:
    """Read the row as it is now."""
    return ContentJob.objects.get(pk=job.pk)


def state(job: ContentJob) -> tuple[str, str | None, int]:
    """Give (status, dispatch_status, round) as stored."""
    row = stored(job)
    return row.status, row.dispatch_status, row.round


def raise_round(job: ContentJob, token: int) -> None:
    """Put a whole pending intent of another round into the row, past the protocol."""
    snapshot = {**stored(job).dispatch_input, "fencing_token": token}
    force(
        job,
        dispatch_status="pending",
        dispatch_fencing_token=token,
        dispatch_input=snapshot,
        dispatch_next_at=job.created_at,
    )
