"""Business writes of a round that is over change nothing."""

import pytest

from jobs.dispatch import FencedOutcome, cancel, fenced_update, new_round
from jobs.models import ContentJob
from jobs.models.content import OPEN_STATUSES
from kernel import WorkflowCanceled
from tests.dispatch.rows import force, new_job, stored

pytestmark = pytest.mark.django_db


def finish(job: ContentJob, token: int, **changes: object) -> FencedOutcome:
    return fenced_update(
        ContentJob, job.pk, token, from_status=OPEN_STATUSES, **({"status": "ready"} | changes)
    ).outcome


def test_open_round_is_written() -> None:
    job = new_job()
    assert finish(job, 1, title="done") is FencedOutcome.WRITTEN
    assert (stored(job).status, stored(job).title) == ("ready", "done")


def test_repeat_is_already_and_keeps_the_first_result() -> None:
    job = new_job()
    finish(job, 1, title="first")
    assert finish(job, 1, title="second") is FencedOutcome.ALREADY
    assert stored(job).title == "first"


def test_late_worker_of_the_same_finished_round_changes_nothing() -> None:
    job = new_job()
    finish(job, 1, status="failed")
    assert finish(job, 1, status="ready", title="late") is FencedOutcome.CLOSED
    assert (stored(job).status, stored(job).title) == ("failed", "")


def test_late_worker_of_an_older_round_changes_nothing() -> None:
    job = new_job()
    force(job, status="failed")
    new_round(stored(job))
    assert finish(job, 1, title="late") is FencedOutcome.ROUND_PASSED
    assert (stored(job).status, stored(job).title) == ("initial", "")


def test_canceled_and_deleted_objects_are_told_apart() -> None:
    job = new_job()
    cancel(ContentJob, job.pk)
    assert finish(job, 1) is FencedOutcome.CLOSED
    force(job, dispatch_status="withdrawn")
    stored(job).delete()
    assert finish(job, 1) is FencedOutcome.GONE


def test_write_without_a_status_keeps_the_status() -> None:
    job = new_job()
    write = fenced_update(ContentJob, job.pk, 1, from_status="initial", title="t")
    assert (write.outcome, write.status, write.done) == (FencedOutcome.WRITTEN, "initial", True)
    assert fenced_update(ContentJob, job.pk, 1, from_status="generating", title="u").status == (
        "initial"
    )


def test_require_lets_a_done_write_pass_and_cancels_the_workflow_otherwise() -> None:
    job = new_job()
    write = fenced_update(ContentJob, job.pk, 1, from_status="initial", status="generating")
    assert write.require() is write
    cancel(ContentJob, job.pk)
    with pytest.raises(WorkflowCanceled, match="closed"):
        fenced_update(
            ContentJob, job.pk, 1, from_status=OPEN_STATUSES, status="generating"
        ).require()
