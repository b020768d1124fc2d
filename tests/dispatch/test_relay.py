"""The request path: after the commit, at once if that is quick, and never in the answer's way."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from jobs.dispatch import cancel, new_round, recovery, relay, transitions
from jobs.dispatch.intent import Intent
from jobs.models import ContentJob
from jobs.runtime import using_kernel
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, new_job, state, stored
from tests.dispatch.test_transitions import intent_of

pytestmark = pytest.mark.django_db(transaction=True)


def instance_of(kernel: Kernel, job: ContentJob) -> Any:
    return kernel.find(biz_key=job.dispatch_key())


def test_committed_job_is_registered_and_confirmed_at_once(kernel: Kernel) -> None:
    job = new_job()
    assert state(job) == ("initial", "dispatched", 1)
    instance = instance_of(kernel, job)
    assert (instance.type, instance.status, instance.fencing_token) == (
        "content.article",
        "running",
        1,
    )


def test_nothing_is_registered_before_the_commit(kernel: Kernel) -> None:
    with transaction.atomic():
        with transaction.atomic():
            job = new_job()
        assert instance_of(kernel, job) is None
        assert state(job)[1] == "pending"
    assert instance_of(kernel, job) is not None
    assert state(job)[1] == "dispatched"


def test_rollback_leaves_neither_object_nor_instance(kernel: Kernel) -> None:
    job = roll_back(new_job)
    assert not ContentJob.objects.filter(pk=job.pk).exists()
    assert instance_of(kernel, job) is None


def test_inner_rollback_takes_its_job_along_and_leaves_the_outer_one(kernel: Kernel) -> None:
    with transaction.atomic():
        outer = new_job()
        inner = roll_back(new_job)
    assert instance_of(kernel, outer) is not None
    assert instance_of(kernel, inner) is None
    assert not ContentJob.objects.filter(pk=inner.pk).exists()


def test_callback_of_somebody_else_that_raises_costs_time_only(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    made: list[ContentJob] = []
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        made.append(after(fail, new_job))
    job = made[0]
    assert state(job) == ("initial", "pending", 1)
    database_time.advance(3)
    assert recovery.dispatch_due().dispatched == 1
    assert state(job) == ("initial", "dispatched", 1)
    assert instance_of(kernel, job) is not None


def test_store_away_costs_the_answer_a_moment_once_and_no_job(
    dead_kernel: Kernel, kernel: Kernel, database_time: DatabaseTime
) -> None:
    with using_kernel(dead_kernel):
        started = time.monotonic()
        jobs = [new_job() for _ in range(5)]
        assert time.monotonic() - started < 3
    assert {state(job) for job in jobs} == {("initial", "pending", 1)}
    database_time.advance(3)
    assert recovery.dispatch_due().dispatched == 5
    assert {state(job)[1] for job in jobs} == {"dispatched"}
    assert all(instance_of(kernel, job) is not None for job in jobs)


def test_registration_refused_by_the_kernel_is_not_the_client_s_problem(
    kernel: Kernel,
) -> None:
    job, intent = pending_job()
    relay.publish(replace(intent, type="content.unknown"))
    assert state(job) == ("initial", "pending", 1)
    assert instance_of(kernel, job) is None


def test_late_publish_of_a_confirmed_round_changes_nothing(kernel: Kernel) -> None:
    job = new_job()
    before = instance_of(kernel, job)
    relay.publish(intent_of(job))
    assert instance_of(kernel, job) == before
    assert state(job) == ("initial", "dispatched", 1)


def test_late_publish_of_an_old_round_leaves_the_new_one_alone(kernel: Kernel) -> None:
    job = new_job()
    old = intent_of(job)
    replayed_after_failure(kernel, job)
    relay.publish(old)
    assert state(job) == ("initial", "dispatched", 2)
    assert instance_of(kernel, job).fencing_token == 2


def test_cancel_supersedes_the_instance_and_withdraws_the_row(kernel: Kernel) -> None:
    job = new_job()
    cancel(ContentJob, job.pk)
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, job).status == "canceled"


def test_cancel_of_a_row_nobody_registered_withdraws_it(kernel: Kernel) -> None:
    job, _ = pending_job()
    cancel(ContentJob, job.pk)
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, job) is None


def test_publish_that_comes_after_the_cancel_ends_what_it_registered(kernel: Kernel) -> None:
    job, intent = pending_job()
    cancel(ContentJob, job.pk)
    relay.publish(intent)
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, job).status == "canceled"


def test_publish_that_comes_after_the_delete_ends_what_it_registered(kernel: Kernel) -> None:
    job, intent = pending_job()
    cancel(ContentJob, job.pk)
    stored(job).delete()
    relay.publish(intent)
    assert instance_of(kernel, job).status == "canceled"


def test_cancel_with_the_store_away_is_finished_by_recovery(
    kernel: Kernel, dead_kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    with using_kernel(dead_kernel):
        cancel(ContentJob, job.pk)
    assert state(job) == ("canceled", "withdrawing", 1)
    database_time.advance(3)
    assert recovery.dispatch_due().withdrawn == 1
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, job).status == "canceled"


def roll_back(make: Callable[[], ContentJob]) -> ContentJob:
    """Make a job in a block of its own that is rolled back."""
    with transaction.atomic():
        job = make()
        transaction.set_rollback(True)
    return job


def after(callback: Callable[[], None], make: Callable[[], ContentJob]) -> ContentJob:
    """Make a job in a transaction in which somebody else waits for the commit too."""
    transaction.on_commit(callback)
    return make()


def pending_job() -> tuple[ContentJob, Intent]:
    """Install a job whose process died between commit and registration."""
    relay.breaker.failed()
    job = new_job()
    relay.breaker.succeeded()
    return job, intent_of(job)


def replayed_after_failure(kernel: Kernel, job: ContentJob) -> None:
    """Bring a job to its second round as a failed first round and a user's retry do."""
    fail_instance(kernel, job)
    force(job, status="failed")
    assert new_round(stored(job)) is not None
    assert transitions.rows(ContentJob).get(pk=job.pk).dispatch_status == "dispatched"


def fail_instance(kernel: Kernel, job: ContentJob) -> None:
    """Let the instance of a job end as failed, by running it with a definition that refuses."""
    from tests.dispatch.failing import register_refusing_article

    register_refusing_article(kernel)
    kernel.drain(queues=["content"])
    assert instance_of(kernel, job).status == "failed"
