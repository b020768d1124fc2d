"""Recovery: whatever a request path left behind reaches the kernel, row by row."""

from datetime import timedelta
from typing import Any

import pytest

from jobs.dispatch import cancel, handling, relay, transitions
from jobs.dispatch.handling import Handled, backoff
from jobs.dispatch.recovery import dispatch_due
from jobs.dispatch.registration import register_page
from jobs.models import ContentJob
from kernel import Kernel, Plan, StartResult, StoreUnavailable
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.failing import register_empty_article
from tests.dispatch.rows import force, new_job, raise_round, state, stored
from tests.dispatch.test_relay import fail_instance, instance_of, pending_job
from tests.dispatch.test_requests import together

pytestmark = pytest.mark.django_db(transaction=True)


def test_pending_row_is_registered_and_dispatched(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, _ = pending_job()
    database_time.advance(3)
    report = dispatch_due()
    assert (report.dispatched, report.handled) == (1, 1)
    assert state(job) == ("initial", "dispatched", 1)
    assert instance_of(kernel, job).input["job_id"] == job.pk
    assert dispatch_due().handled == 0


def test_row_whose_confirm_was_lost_is_confirmed_without_a_second_instance(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    before = instance_of(kernel, job)
    force(job, dispatch_status="pending", dispatch_next_at=job.created_at)
    database_time.advance(3)
    assert dispatch_due().dispatched == 1
    assert instance_of(kernel, job) == before


def test_row_of_a_dead_dispatcher_is_taken_over_when_its_claim_runs_out(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, _ = pending_job()
    database_time.advance(3)
    assert transitions.take(ContentJob, job.pk) is not None
    assert dispatch_due().handled == 0
    database_time.advance(31)
    assert dispatch_due().dispatched == 1
    assert state(job)[1] == "dispatched"


def test_two_hundred_poisoned_rows_do_not_block_the_good_one_behind_them(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    relay.breaker.failed()
    poisoned = [new_job() for _ in range(200)]
    good = new_job()
    relay.breaker.succeeded()
    ContentJob._base_manager.exclude(pk=good.pk).update(dispatch_type="content.unknown")
    database_time.advance(3)

    report = dispatch_due(limit=250)

    assert state(good)[1] == "dispatched"
    assert (report.dispatched, report.deferred) == (1, 200)
    sample = stored(poisoned[0])
    assert (sample.dispatch_status, sample.dispatch_attempts) == ("pending", 1)
    assert "content.unknown" in sample.dispatch_last_error


def test_poisoned_row_s_delay_grows_and_it_recovers_when_repaired(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, _ = pending_job()
    force(job, dispatch_type="content.unknown")
    for attempts in range(1, 5):
        database_time.advance(backoff(attempts).total_seconds() + 3)
        assert dispatch_due().deferred == 1
        assert stored(job).dispatch_attempts == attempts
    force(job, dispatch_type="content.article")
    database_time.advance(700)
    assert dispatch_due().dispatched == 1
    assert stored(job).dispatch_last_error == ""


def test_delay_doubles_up_to_ten_minutes_and_never_ends() -> None:
    assert backoff(0) == timedelta(seconds=1)
    assert backoff(3) == timedelta(seconds=8)
    assert backoff(10_000) == timedelta(minutes=10)


@pytest.mark.parametrize("name", ["type", "biz_key", "fencing_token"])
def test_snapshot_that_names_another_round_starts_nothing(
    name: str, kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, intent = pending_job()
    force(job, dispatch_input={**intent.snapshot(), name: "other"})
    database_time.advance(3)
    assert dispatch_due().deferred == 1
    assert name in stored(job).dispatch_last_error
    assert instance_of(kernel, job) is None


def test_outage_ends_the_pass_costs_no_attempts_and_loses_no_row(
    kernel: Kernel,
    dead_kernel: Kernel,
    database_time: DatabaseTime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handling, "RECOVERY_TIMEOUT_SECONDS", 0.3)
    jobs = [pending_job()[0] for _ in range(4)]
    database_time.advance(3)
    for _ in range(3):
        report = dispatch_due(kernel=dead_kernel)
        assert (report.unavailable, report.handled) == (1, 1)
    assert {stored(job).dispatch_attempts for job in jobs} == {0}
    database_time.advance(10)
    assert dispatch_due().dispatched == 4


def test_new_round_while_the_old_one_still_runs_waits_for_it(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    raise_round(job, 2)
    database_time.advance(3)
    assert dispatch_due().deferred == 1
    assert state(job) == ("initial", "pending", 2)
    assert "busy" in stored(job).dispatch_last_error
    fail_instance(kernel, job)
    database_time.advance(10)
    assert dispatch_due().dispatched == 1
    assert instance_of(kernel, job).fencing_token == 2


def test_round_older_than_the_instance_s_is_refused_and_says_so(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    relay.breaker.failed()
    job = new_job()
    relay.breaker.succeeded()
    raise_round(job, 3)
    database_time.advance(3)
    dispatch_due()
    raise_round(job, 2)
    database_time.advance(3)
    assert dispatch_due().refused == 1
    assert state(job)[1] == "refused"
    assert "older" in stored(job).dispatch_last_error
    assert instance_of(kernel, job).fencing_token == 3


def test_round_of_a_finished_instance_is_refused_and_says_so(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    register_empty_article(kernel)
    kernel.drain(queues=["content"])
    assert instance_of(kernel, job).status == "completed"
    raise_round(job, 2)
    database_time.advance(3)
    assert dispatch_due().refused == 1
    assert state(job)[1] == "refused"
    assert cancel(ContentJob, job.pk)
    assert state(job) == ("canceled", "withdrawn", 2)


def test_cancel_during_registration_ends_the_instance_it_created(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, _ = pending_job()
    database_time.advance(3)
    taken = transitions.take(ContentJob, job.pk)
    assert taken is not None
    cancel(ContentJob, job.pk)
    assert handling.handle(kernel, taken) is Handled.LOST
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, job).status == "canceled"


def test_old_generation_is_ended_before_the_new_one_starts(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    old = new_job()
    job, _ = pending_job()
    force(job, dispatch_supersedes=old.dispatch_key())
    database_time.advance(3)
    assert dispatch_due().dispatched == 1
    assert instance_of(kernel, old).status == "canceled"
    assert instance_of(kernel, job).status == "running"


def test_dispatchers_side_by_side_handle_each_row_once(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    jobs = [pending_job()[0] for _ in range(20)]
    database_time.advance(3)
    reports = together(4, lambda: dispatch_due(kernel=kernel))
    assert sum(report.dispatched for report in reports) == 20
    assert {state(job)[1] for job in jobs} == {"dispatched"}


def test_a_page_is_registered_by_one_call_and_the_rows_that_need_more_alone(
    kernel: Kernel, database_time: DatabaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    start_many = Kernel.start_many

    def counted(self: Kernel, plan: Plan, items: Any, **options: Any) -> list[StartResult]:
        calls.append(len(items))
        return start_many(self, plan, items, **options)

    monkeypatch.setattr(Kernel, "start_many", counted)
    old, busy, done = new_job(), new_job(), new_job()
    kernel.supersede(instance_of(kernel, done).workflow_id, reason="over")
    raise_round(busy, 2)
    raise_round(done, 2)
    plain = [pending_job()[0] for _ in range(12)]
    successor, contradicts, gone = (pending_job()[0] for _ in range(3))
    force(successor, dispatch_supersedes=old.dispatch_key())
    force(contradicts, dispatch_input={"input": {}, "type": "other"})
    cancel(ContentJob, gone.pk)
    force(gone, dispatch_status="withdrawing", dispatch_next_at=gone.created_at)
    database_time.advance(3)

    report = dispatch_due()

    assert (report.dispatched, report.withdrawn, report.refused, report.deferred) == (13, 1, 1, 2)
    assert {state(job)[1] for job in [*plain, successor]} == {"dispatched"}
    assert state(done)[1] == "refused"
    assert "busy" in stored(busy).dispatch_last_error
    assert "type" in stored(contradicts).dispatch_last_error
    assert instance_of(kernel, old).status == "canceled"
    assert sum(calls) in (13, 14), "all plain rows but the first of the pass"
    assert len(calls) <= 4


def test_one_bad_row_of_a_page_is_put_off_and_the_others_are_dispatched(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    jobs = [pending_job()[0] for _ in range(6)]
    bad = pending_job()[0]
    force(bad, dispatch_priority=77)
    more = [pending_job()[0] for _ in range(6)]
    database_time.advance(3)
    report = dispatch_due()
    assert (report.dispatched, report.deferred) == (12, 1)
    assert {state(job)[1] for job in [*jobs, *more]} == {"dispatched"}
    assert stored(bad).dispatch_attempts == 1


def test_a_row_canceled_while_its_page_is_registered_is_ended_not_confirmed(
    kernel: Kernel, database_time: DatabaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [pending_job()[0] for _ in range(5)]

    def cancel_meanwhile(*told: Any, **options: Any) -> list[StartResult]:
        answers = register_page(*told, **options)
        cancel(ContentJob, jobs[2].pk)
        return answers

    monkeypatch.setattr(handling, "register_page", cancel_meanwhile)
    database_time.advance(3)
    report = dispatch_due()
    assert (report.dispatched, report.lost) == (4, 1)
    assert state(jobs[2]) == ("canceled", "withdrawn", 1)
    assert instance_of(kernel, jobs[2]).status == "canceled"


def test_an_outage_in_the_middle_of_a_page_costs_no_attempts_and_loses_no_row(
    kernel: Kernel, database_time: DatabaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [pending_job()[0] for _ in range(5)]

    def away(*_: Any, **__: Any) -> list[StartResult]:
        raise StoreUnavailable("away")

    monkeypatch.setattr(handling, "register_page", away)
    monkeypatch.setattr(handling, "register", away)
    database_time.advance(3)
    assert dispatch_due().unavailable == 1
    monkeypatch.undo()
    monkeypatch.setattr(handling, "register_page", away)
    database_time.advance(10)
    assert dispatch_due().dispatched == 5, "each alone when the page found no answer"
    assert {stored(job).dispatch_attempts for job in jobs} == {0}
