"""Starting over: a new name, a higher number, the old instance ended first, one winner."""

from functools import partial
from typing import Any

import pytest
from django.db.models import Q

from jobs.dispatch import (
    NotInstalled,
    cancel,
    handling,
    new_generation,
    recovery,
    relay,
    transitions,
)
from jobs.dispatch.generations import next_generation_key
from jobs.models import ContentJob
from jobs.services import content
from jobs.services.errors import NotRetryable, RoundInProgress
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.failing import register_empty_article, register_refusing_article
from tests.dispatch.rows import force, new_job, raise_round, state, stored
from tests.dispatch.test_relay import instance_of, pending_job
from tests.dispatch.test_requests import CountWrites, together
from tests.jobs.site import Site


@pytest.mark.parametrize(
    ("first", "current", "following"),
    [
        ("t:a", "t:a", "t:a:g2"),
        ("t:a", "t:a:g2", "t:a:g3"),
        ("t:a", "t:a:g99", "t:a:g100"),
        ("t:a", "a name from before the mixin", "t:a:g2"),
        ("t:a:g7", "t:a:g7", "t:a:g7:g2"),
        ("t:a", "t:a:g٢", "t:a:g2"),
    ],
)
def test_generations_are_numbered_from_the_row_s_own_name(
    first: str, current: str, following: str
) -> None:
    assert next_generation_key(first, current) == following


@pytest.mark.django_db
class TestOneWrite:
    @pytest.mark.parametrize(
        ("status", "dispatch"),
        [
            ("ready", "dispatched"),
            ("ready", "pending"),
            ("failed", "dispatched"),
            ("canceled", "withdrawn"),
            ("initial", "refused"),
            ("generating", "refused"),
        ],
    )
    def test_what_is_over_or_refused_gets_a_whole_new_intent(
        self, status: str, dispatch: str
    ) -> None:
        job = new_job()
        force(job, status=status, dispatch_status=dispatch, title="old", error_code="x")
        with CountWrites() as writes:
            intent = new_generation(stored(job))
        assert [sql.split()[0] for sql in writes.statements] == ["UPDATE"]
        assert intent is not None
        row = stored(job)
        assert state(job) == ("initial", "pending", 2)
        assert row.dispatch_biz_key == f"{job.dispatch_key()}:g2"
        assert row.dispatch_supersedes == job.dispatch_key()
        assert row.dispatch_input == intent.snapshot()
        assert (row.title, row.error_code, row.result) == ("", "", None)

    @pytest.mark.parametrize(
        ("status", "dispatch"),
        [
            ("initial", "pending"),
            ("generating", "dispatched"),
            ("initial", "processing"),
            ("canceled", "withdrawing"),
        ],
    )
    def test_what_is_under_way_gets_none(self, status: str, dispatch: str) -> None:
        job = new_job()
        force(job, status=status, dispatch_status=dispatch)
        assert new_generation(stored(job)) is None
        assert state(job) == (status, dispatch, 1)

    @pytest.mark.parametrize(
        "changed",
        [
            {"status": "failed"},
            {"dispatch_fencing_token": 2},
            {"dispatch_biz_key": "content.article:acme:other"},
        ],
    )
    def test_belief_that_no_longer_holds_gets_none(self, changed: dict[str, object]) -> None:
        job = new_job()
        force(job, status="ready", dispatch_status="dispatched")
        believed = stored(job)
        force(job, **changed)
        assert new_generation(believed) is None
        assert stored(job).dispatch_status == "dispatched"

    def test_further_condition_must_hold_too(self) -> None:
        job = new_job()
        force(job, status="ready", dispatch_status="dispatched")
        assert new_generation(stored(job), where=Q(title="another")) is None
        assert new_generation(stored(job), where=Q(title="")) is not None

    def test_row_older_than_the_mixin_is_refused(self) -> None:
        job = new_job()
        force(job, dispatch_biz_key=None, dispatch_status=None)
        with pytest.raises(NotInstalled):
            new_generation(stored(job))

    def test_retry_inside_a_later_generation_keeps_its_name(self) -> None:
        job = new_job()
        force(job, status="ready", dispatch_status="dispatched")
        content.regenerate_job("acme", job.pk)
        force(job, status="failed", dispatch_status="dispatched")
        row = content.retry_job("acme", job.pk)
        assert (row.dispatch_biz_key, row.round) == (f"{job.dispatch_key()}:g2", 3)
        assert row.dispatch_supersedes is None


@pytest.mark.django_db
class TestService:
    @pytest.mark.parametrize("status", ["initial", "generating"])
    def test_job_at_work_is_a_round_in_progress(self, status: str) -> None:
        job = new_job()
        force(job, status=status)
        with pytest.raises(RoundInProgress, match=status):
            content.regenerate_job("acme", job.pk)

    def test_job_whose_cancel_is_not_carried_out_yet_is_a_round_in_progress(self) -> None:
        job = new_job()
        cancel(ContentJob, job.pk)
        with pytest.raises(RoundInProgress):
            content.regenerate_job("acme", job.pk)
        force(job, dispatch_status="withdrawn")
        assert content.regenerate_job("acme", job.pk).round == 2

    def test_refused_job_is_told_that_no_retry_helps(self) -> None:
        job = new_job()
        force(job, dispatch_status="refused")
        with pytest.raises(NotRetryable, match="refused"):
            content.retry_job("acme", job.pk)
        assert content.regenerate_job("acme", job.pk).round == 2


@pytest.mark.django_db(transaction=True)
class TestWithTheKernel:
    def test_finished_job_is_done_over_from_its_first_step(
        self, serving: Kernel, site: Site
    ) -> None:
        job = content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
        serving.drain(queues=["content"])
        assert state(job) == ("ready", "dispatched", 1)
        content.regenerate_job("acme", job.pk)
        serving.drain(queues=["content"])
        assert state(job) == ("ready", "dispatched", 2)
        assert site.asked == ["/tides", "/tides"]
        first, second = instance_of(serving, job), latest(serving, job)
        assert (first.status, first.fencing_token) == ("completed", 1)
        assert (second.status, second.fencing_token) == ("completed", 2)

    def test_old_instance_that_still_runs_is_ended_before_the_new_one_starts(
        self, kernel: Kernel
    ) -> None:
        job = new_job()
        force(job, status="ready")
        content.regenerate_job("acme", job.pk)
        assert instance_of(kernel, job).status == "canceled"
        assert latest(kernel, job).status == "running"
        assert state(job) == ("initial", "dispatched", 2)

    def test_late_registration_of_the_old_generation_is_ended(self, kernel: Kernel) -> None:
        job, intent = pending_job()
        cancel(ContentJob, job.pk)
        content.regenerate_job("acme", job.pk)
        relay.publish(intent)
        assert instance_of(kernel, job).status == "canceled"
        assert latest(kernel, job).status == "running"
        assert state(job) == ("initial", "dispatched", 2)

    def test_dispatcher_that_took_the_old_generation_leaves_the_new_one_alone(
        self, kernel: Kernel, database_time: DatabaseTime
    ) -> None:
        job, _ = pending_job()
        database_time.advance(3)
        taken = transitions.take(ContentJob, job.pk)
        assert taken is not None
        force(job, status="ready")
        content.regenerate_job("acme", job.pk)
        assert handling.handle(kernel, taken) is handling.Handled.LOST
        assert instance_of(kernel, job).status == "canceled"
        assert state(job) == ("initial", "dispatched", 2)

    def test_withdrawal_ends_the_generation_that_was_never_superseded(
        self, kernel: Kernel, database_time: DatabaseTime
    ) -> None:
        job = new_job()
        force(job, status="ready")
        relay.breaker.failed()
        content.regenerate_job("acme", job.pk)
        content.cancel_job("acme", job.pk)
        relay.breaker.succeeded()
        database_time.advance(3)
        assert recovery.dispatch_due().withdrawn == 1
        assert instance_of(kernel, job).status == "canceled"
        assert latest(kernel, job) is None

    def test_new_generation_waits_for_the_failure_finalizer_of_the_old_one(
        self, kernel: Kernel, database_time: DatabaseTime
    ) -> None:
        register_refusing_article(kernel)
        job = new_job()
        kernel.drain(queues=["content"])
        force(job, status="failed")
        content.regenerate_job("acme", job.pk)
        assert state(job) == ("initial", "dispatched", 2)

    def test_round_refused_after_a_restored_backup_can_be_done_over(
        self, kernel: Kernel, database_time: DatabaseTime
    ) -> None:
        register_empty_article(kernel)
        job = new_job()
        kernel.drain(queues=["content"])
        raise_round(job, 2)
        database_time.advance(3)
        assert recovery.dispatch_due().refused == 1
        content.regenerate_job("acme", job.pk)
        assert state(job) == ("initial", "dispatched", 3)

    def test_of_racing_regenerations_exactly_one_wins(self, kernel: Kernel) -> None:
        for _ in range(3):
            job = new_job()
            force(job, status="ready")
            answers = together(6, partial(_tried, job.pk))
            assert sorted(answers) == ["lost"] * 5 + ["won"]
            assert stored(job).round == 2


def _tried(pk: str) -> str:
    try:
        content.regenerate_job("acme", pk)
    except RoundInProgress:
        return "lost"
    return "won"


def latest(kernel: Kernel, job: ContentJob) -> Any:
    return kernel.find(biz_key=str(stored(job).dispatch_biz_key))
