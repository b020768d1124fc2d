"""Whoever lost a dispatch claim, or never had one, settles nothing and starts nothing."""

from datetime import timedelta
from typing import Any

import pytest

from jobs.dispatch import handling, relay, transitions
from jobs.dispatch.clock import db_now
from jobs.dispatch.handling import Handled
from jobs.dispatch.recovery import dispatch_due
from jobs.models import ContentJob
from kernel import Kernel, StartResult, StoreUnavailable
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, new_job, raise_round, state
from tests.dispatch.test_relay import fail_instance, instance_of, pending_job
from tests.dispatch.test_transitions import intent_of

pytestmark = pytest.mark.django_db(transaction=True)


def taken_of(job: ContentJob) -> transitions.Taken:
    taken = transitions.take(ContentJob, job.pk)
    assert taken is not None
    return taken


def test_a_page_confirms_the_rows_whose_claims_are_still_held(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    jobs = [pending_job()[0] for _ in range(3)]
    database_time.advance(3)
    page = [taken_of(job) for job in jobs]
    force(jobs[1], dispatch_claim_token="somebody-else")
    assert transitions.confirm_page(page) == {jobs[0].pk, jobs[2].pk}
    assert [state(job)[1] for job in jobs] == ["dispatched", "processing", "dispatched"]


def test_a_row_made_due_by_hand_is_not_taken_beside_its_holder(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job, _ = pending_job()
    database_time.advance(3)
    taken = taken_of(job)
    force(job, dispatch_next_at=db_now(-timedelta(seconds=1)))
    assert transitions.take(ContentJob, job.pk) is None
    assert transitions.confirm_taken(taken)


def test_only_what_is_withdrawing_becomes_withdrawn(kernel: Kernel) -> None:
    job = new_job()
    assert state(job)[1] == "dispatched"
    assert not transitions.withdrawn(intent_of(job))
    assert state(job)[1] == "dispatched"


def test_an_older_generation_is_not_ended_by_who_lost_the_row(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    old = new_job()
    job, _ = pending_job()
    force(job, dispatch_supersedes=old.dispatch_key())
    database_time.advance(3)
    taken = taken_of(job)
    force(job, dispatch_claim_token="somebody-else")
    assert handling.handle(kernel, taken) is Handled.LOST
    assert instance_of(kernel, old).status == "running"
    assert instance_of(kernel, job) is None


def test_rows_of_a_page_that_broke_are_started_one_by_one_only_while_held(
    kernel: Kernel, database_time: DatabaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [pending_job()[0] for _ in range(5)]

    def breaks(*_: Any, **__: Any) -> list[StartResult]:
        force(jobs[2], dispatch_claim_token="somebody-else")
        raise StoreUnavailable("away")

    monkeypatch.setattr(handling, "register_page", breaks)
    database_time.advance(3)
    report = dispatch_due()
    assert (report.dispatched, report.lost) == (4, 1)
    assert instance_of(kernel, jobs[2]) is None


def test_a_round_the_kernel_does_not_accept_yet_stays_pending(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    raise_round(job, 2)
    relay.publish(intent_of(job))
    assert state(job) == ("initial", "pending", 2), "the first round still runs"
    assert instance_of(kernel, job).fencing_token == 1
    fail_instance(kernel, job)
    database_time.advance(3)
    assert dispatch_due().dispatched == 1
    assert instance_of(kernel, job).fencing_token == 2


def test_what_was_accepted_last_does_not_wait_behind_a_wall_of_rows(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    wall = [pending_job()[0] for _ in range(12)]
    database_time.advance(1)
    last, _ = pending_job()
    database_time.advance(3)
    assert dispatch_due(limit=5).dispatched == 5
    assert state(last)[1] == "dispatched"
    assert [state(job)[1] for job in wall[:3]] == ["dispatched"] * 3
