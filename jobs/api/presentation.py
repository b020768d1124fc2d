"""Turn a job, and what the kernel knows about its workflow, into the API's JSON.

Guarantees: metadata, options and result pass through untouched; times are RFC 3339 in UTC with
milliseconds; what is not known is said as ``unknown``, never guessed.
Leaves to others: reading the facts (``jobs.api.views``).
"""

from datetime import UTC, datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.reverse import reverse

from jobs.dispatch import DispatchStatus
from jobs.models import ContentJob, JobKind
from kernel import WorkflowInstance, workflow_id_of

#: Statuses a job can be canceled from.
_OPEN = frozenset({"initial", "generating"})


def accepted(request: Request, job: ContentJob) -> dict[str, Any]:
    """Shape the answer of a 202."""
    return {
        "id": job.pk,
        "status": str(job.status),
        "round": job.round,
        "links": _links(request, job),
    }


def summary(request: Request, job: ContentJob) -> dict[str, Any]:
    """Shape one row of the list."""
    failed = bool(job.error_code or job.error_message)
    return {
        **accepted(request, job),
        "kind": str(job.kind),
        "source_url": job.source_url,
        "title": job.title or None,
        "error": {"code": job.error_code, "message": job.error_message} if failed else None,
        "created_at": moment(job.created_at),
        "updated_at": moment(job.updated_at),
        "finished_at": moment(job.finished_at),
    }


def detail(
    request: Request, job: ContentJob, instance: WorkflowInstance | None, *, known: bool
) -> dict[str, Any]:
    """Shape one job; ``known`` is False when the workflow store did not answer."""
    current = of_this_round(job, instance)
    return {
        **summary(request, job),
        "workflow_id": workflow_id_of(job.dispatch_biz_key or ""),
        "options": job.options,
        "metadata": job.metadata,
        "result": job.result,
        "waiting": _waiting(job, current, known=known),
        "progress": None if current is None else _progress(current),
    }


def of_this_round(job: ContentJob, instance: WorkflowInstance | None) -> WorkflowInstance | None:
    """Return the instance if it works for the job's present round."""
    return instance if instance and instance.fencing_token == job.dispatch_fencing_token else None


def moment(value: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC with milliseconds."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _links(request: Request, job: ContentJob) -> dict[str, str]:
    links = {"self": _address(request, "job", job)}
    if job.status == "failed":
        links["retry"] = _address(request, "job-retry", job)
    if job.status not in _OPEN or _is_refused(job):
        links["regenerate"] = _address(request, "job-regenerate", job)
    if job.status in _OPEN:
        links["cancel"] = _address(request, "job-cancel", job)
    if job.kind == JobKind.DIGEST:
        links["choice"] = _address(request, "job-choice", job)
    return links


def _is_refused(job: ContentJob) -> bool:
    return job.dispatch_status == DispatchStatus.REFUSED


def _address(request: Request, name: str, job: ContentJob) -> str:
    return str(reverse(name, args=[job.pk], request=request))


def _waiting(
    job: ContentJob, instance: WorkflowInstance | None, *, known: bool
) -> dict[str, Any] | None:
    if job.status not in _OPEN:
        return None
    if _is_refused(job):
        return {"reason": "refused", "resource": None, "since": moment(job.updated_at)}
    if not known:
        return {"reason": "unknown", "resource": None, "since": None}
    if instance is None:
        # The intent is stored and has not reached the kernel, or the round before still converges.
        return {"reason": "dispatch", "resource": None, "since": moment(job.updated_at)}
    blocked = instance.blocked_on
    if blocked is None:
        return None
    return {
        "reason": str(blocked.reason),
        "resource": blocked.resources[0] if blocked.resources else None,
        "since": moment(blocked.since),
    }


def _progress(instance: WorkflowInstance) -> dict[str, Any]:
    steps = [(name, instance.steps[name]) for name in instance.plan]
    return {
        "done": sum(step.is_done for _, step in steps),
        "total": len(steps),
        "steps": [
            {"name": name, "status": str(step.status), "attempt": step.attempt}
            for name, step in steps
        ],
    }
