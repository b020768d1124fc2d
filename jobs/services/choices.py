"""A choice a workflow leaves to its user.

```
(none) ──the step opens it──▶ open ──choose──▶ made        once a round, never back
```

Guarantees: of racing answers one is stored, by one conditional update, and then rung; the same
answer again is the same answer, and rings again. A death between storing and ringing is covered by
the step's poll fallback. Leaves to others: who may ask (`jobs.api.choices`), what the candidates
are (`jobs.activities.digest`).
"""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import router, transaction

from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, JobChoice
from jobs.models.content import OPEN_STATUSES
from jobs.services import rounds
from jobs.services.content import get_job
from jobs.services.errors import ChoiceMade, ChoiceNotOpen, UnknownOption
from jobs.services.ringing import ring
from kernel import workflow_id_of

#: Type of the signal a choice rings with.
SIGNAL = "choice_made"


def open_choice(job_id: str, fencing_token: int, candidates: list[dict[str, Any]]) -> JobChoice:
    """Offer candidates to the user of this round. On repeat: the choice as it stands.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone; nothing is offered.
    """
    with transaction.atomic():
        rounds.enter_generating(job_id, fencing_token)
        choice, _ = JobChoice.objects.get_or_create(
            job_id=job_id, round=fencing_token, defaults={"candidates": candidates}
        )
    return choice


def find_choice(tenant: str, job_id: str) -> JobChoice | None:
    """Read the choice of the job's present round; None when it offers none (yet).

    Raises:
        JobNotFound: the tenant has no such job.
    """
    return _of_round(get_job(tenant, job_id))


def choose(
    tenant: str, job_id: str, option: str, *, chosen_by: AbstractBaseUser | None = None
) -> ContentJob:
    """Take one of the options.

    Raises:
        JobNotFound: the tenant has no such job.
        ChoiceNotOpen: the job's present round offers no choice, not yet or not any more.
        UnknownOption: it is none of those offered.
        ChoiceMade: another option was taken.
    On repeat with the same option: the same answer.
    """
    job = get_job(tenant, job_id)
    choice = _of_round(job)
    if choice is None:
        raise ChoiceNotOpen(job.status)
    known = [candidate["option"] for candidate in choice.candidates]
    if option not in known:
        raise UnknownOption(option, known)
    if choice.option is None and job.status in OPEN_STATUSES:
        JobChoice.objects.filter(pk=choice.pk, option__isnull=True).update(
            option=option,
            chosen_at=db_now(),
            chosen_by_id=None if chosen_by is None else chosen_by.pk,
        )
        choice.refresh_from_db()
    if choice.option is None:
        raise ChoiceNotOpen(job.status)
    if choice.option != option:
        raise ChoiceMade(choice.option)
    transaction.on_commit(
        lambda: _ring(job, choice), using=router.db_for_write(JobChoice), robust=True
    )
    return job


def _of_round(job: ContentJob) -> JobChoice | None:
    return JobChoice.objects.filter(job_id=job.pk, round=job.round).first()


def _ring(job: ContentJob, choice: JobChoice) -> None:
    """Wake the step that waits; a lost ring is only a later look."""
    ring(
        workflow_id=workflow_id_of(job.dispatch_biz_key or ""),
        signal_type=SIGNAL,
        wait_key=job.pk,
        generation=choice.round,
        signal_id=f"choice:{job.pk}:{choice.round}",
    )
