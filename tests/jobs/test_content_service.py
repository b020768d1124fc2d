"""The services: who is told what, and what is written."""

from datetime import timedelta

import pytest

from jobs.models import ContentJob
from jobs.services import content
from jobs.services.errors import AlreadyTerminal, JobNotFound, NotRetryable, RoundInProgress
from kernel import Priority
from tests.dispatch.rows import force, state, stored

pytestmark = pytest.mark.django_db


def submit(tenant: str = "acme", **fields: object) -> ContentJob:
    return content.submit_job(
        tenant=tenant,
        kind="article",
        source_url="https://example.org/a",
        **fields,  # type: ignore[arg-type]
    )


def test_submitted_job_is_stored_with_its_frozen_request() -> None:
    job = submit(options={"max_sentences": 2}, metadata={"ref": 1}, priority=Priority.REALTIME)
    row = content.get_job("acme", job.pk)
    assert row.pk.startswith("job_")
    assert (row.status, row.round) == ("initial", 1)
    assert row.dispatch_input["input"] == {
        "job_id": job.pk,
        "tenant": "acme",
        "source_url": "https://example.org/a",
        "max_sentences": 2,
        "language": None,
        "metadata": {"ref": 1},
    }
    assert row.dispatch_priority == Priority.REALTIME


@pytest.mark.parametrize("job_id", ["job_none", "", "\x00", "job_\ud800", "ä" * 500, "%s' OR 1=1"])
def test_unknown_and_malformed_ids_are_not_found(job_id: str) -> None:
    for call in (content.get_job, content.retry_job, content.cancel_job):
        with pytest.raises(JobNotFound):
            call("acme", job_id)


def test_another_tenant_s_job_does_not_exist() -> None:
    job = submit("acme")
    for call in (content.get_job, content.retry_job, content.cancel_job):
        with pytest.raises(JobNotFound):
            call("other", job.pk)
    assert content.list_jobs("other") == []
    assert state(job) == ("initial", "pending", 1)


def test_retry_of_a_failed_job_starts_the_next_round() -> None:
    job = submit()
    force(job, status="failed", error_code="x", dispatch_status="dispatched")
    row = content.retry_job("acme", job.pk)
    assert (row.status, row.round, row.error_code) == ("initial", 2, "")
    assert row.updated_at > job.updated_at


@pytest.mark.parametrize("status", ["initial", "generating"])
def test_retry_of_a_job_at_work_is_a_round_in_progress(status: str) -> None:
    job = submit()
    force(job, status=status)
    with pytest.raises(RoundInProgress, match=status):
        content.retry_job("acme", job.pk)


@pytest.mark.parametrize("status", ["ready", "canceled"])
def test_retry_of_a_job_that_is_over_otherwise_is_refused(status: str) -> None:
    job = submit()
    force(job, status=status)
    with pytest.raises(NotRetryable, match=status):
        content.retry_job("acme", job.pk)


def test_cancel_repeated_is_the_same_answer() -> None:
    job = submit()
    first = content.cancel_job("acme", job.pk)
    second = content.cancel_job("acme", job.pk)
    assert first.status == second.status == "canceled"
    assert first.finished_at == second.finished_at
    assert second.finished_at is not None


@pytest.mark.parametrize("status", ["ready", "failed"])
def test_cancel_after_the_end_is_refused(status: str) -> None:
    job = submit()
    force(job, status=status, dispatch_status="dispatched")
    with pytest.raises(AlreadyTerminal, match=status):
        content.cancel_job("acme", job.pk)


def test_list_is_newest_first_and_pages_without_gaps_or_repeats() -> None:
    jobs = [submit() for _ in range(5)]
    moment = stored(jobs[0]).created_at
    for job in jobs[:3]:
        force(job, created_at=moment)
    for number, job in enumerate(jobs[3:], start=1):
        force(job, created_at=moment + timedelta(seconds=number))
    seen: list[str] = []
    after = None
    while page := content.list_jobs("acme", after=after, limit=2):
        seen += [job.pk for job in page]
        after = (page[-1].created_at, page[-1].pk)
    same = sorted((job.pk for job in jobs[:3]), reverse=True)
    assert seen == [jobs[4].pk, jobs[3].pk, *same]


def test_list_by_status_and_with_any_limit() -> None:
    first, second = submit(), submit()
    force(first, status="failed")
    assert [job.pk for job in content.list_jobs("acme", status="failed")] == [first.pk]
    assert [job.pk for job in content.list_jobs("acme", limit=0)] == [second.pk]
    assert len(content.list_jobs("acme", limit=10**9)) == 2
