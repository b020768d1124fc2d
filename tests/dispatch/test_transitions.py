"""Each move of an intent happens once, and only for whoever believes rightly."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from jobs.dispatch import cancel, new_round, transitions
from jobs.dispatch.intent import COLUMNS, Intent, read_intent
from jobs.dispatch.states import CLAIM_LEASE
from jobs.models import ContentJob
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, new_job, state, stored

pytestmark = pytest.mark.django_db

LEASE = CLAIM_LEASE.total_seconds()


def intent_of(job: ContentJob) -> Intent:
    row: Any = ContentJob._base_manager.filter(pk=job.pk).values(*COLUMNS).get()
    return read_intent(ContentJob, row)


def taken_of(job: ContentJob, database_time: DatabaseTime) -> transitions.Taken:
    database_time.advance(3)
    taken = transitions.take(ContentJob, job.pk)
    assert taken is not None
    return taken


def due() -> list[str]:
    rows = transitions.rows(ContentJob).filter(transitions.due_filter())
    return list(rows.order_by("dispatch_next_at").values_list("pk", flat=True))


def test_confirm_moves_a_pending_row_once() -> None:
    job = new_job()
    assert transitions.confirm(intent_of(job))
    assert state(job) == ("initial", "dispatched", 1)
    assert not transitions.confirm(intent_of(job))
    assert stored(job).dispatch_next_at is None


def test_confirm_of_an_old_round_touches_nothing_of_the_new_one() -> None:
    job = new_job()
    old = intent_of(job)
    force(job, status="failed")
    assert new_round(stored(job)) is not None
    assert not transitions.confirm(old)
    assert state(job) == ("initial", "pending", 2)


def test_confirm_after_cancel_moves_nothing() -> None:
    job = new_job()
    cancel(ContentJob, job.pk)
    assert not transitions.confirm(intent_of(job))
    assert state(job) == ("canceled", "withdrawing", 1)


def test_confirm_of_another_generation_touches_nothing() -> None:
    job = new_job()
    old = intent_of(job)
    force(job, dispatch_biz_key="content.article:acme:other")
    assert not transitions.confirm(old)


def test_fresh_row_is_left_to_its_request_path_for_a_moment(database_time: DatabaseTime) -> None:
    job = new_job()
    assert due() == []
    assert transitions.take(ContentJob, job.pk) is None
    database_time.advance(3)
    assert due() == [job.pk]


def test_row_is_taken_by_one_only_until_the_claim_runs_out(database_time: DatabaseTime) -> None:
    job = new_job()
    first = taken_of(job, database_time)
    assert state(job)[1] == "processing"
    assert transitions.take(ContentJob, job.pk) is None
    database_time.advance(LEASE + 1)
    second = transitions.take(ContentJob, job.pk)
    assert second is not None
    assert second.claim_token != first.claim_token
    assert not transitions.renew(first)
    assert not transitions.confirm_taken(first)
    assert transitions.confirm_taken(second)
    assert state(job)[1] == "dispatched"


def test_renewed_claim_is_not_taken_over(database_time: DatabaseTime) -> None:
    job = new_job()
    taken = taken_of(job, database_time)
    database_time.advance(LEASE - 1)
    assert transitions.renew(taken)
    database_time.advance(LEASE - 1)
    assert due() == []
    assert transitions.take(ContentJob, job.pk) is None


def test_dispatched_row_is_never_taken(database_time: DatabaseTime) -> None:
    job = new_job()
    transitions.confirm(intent_of(job))
    database_time.advance(1000)
    assert transitions.take(ContentJob, job.pk) is None


def test_given_back_row_keeps_its_round_and_waits_its_delay(database_time: DatabaseTime) -> None:
    job = new_job()
    taken = taken_of(job, database_time)
    assert transitions.give_back(taken, delay=timedelta(seconds=60), reason="why\x00", failed=True)
    row = stored(job)
    assert (row.dispatch_status, row.round, row.dispatch_attempts) == ("pending", 1, 1)
    assert row.dispatch_last_error == "why\ufffd"
    assert row.dispatch_claim_token is None
    database_time.advance(50)
    assert due() == []
    database_time.advance(20)
    assert due() == [job.pk]


@pytest.mark.parametrize("move", ["confirm_taken", "refuse", "give_back", "renew"])
def test_holder_of_a_canceled_row_has_lost_its_claim(
    move: str, database_time: DatabaseTime
) -> None:
    job = new_job()
    taken = taken_of(job, database_time)
    cancel(ContentJob, job.pk)
    moved = {
        "confirm_taken": lambda: transitions.confirm_taken(taken),
        "refuse": lambda: transitions.refuse(taken, "no"),
        "give_back": lambda: transitions.give_back(
            taken, delay=timedelta(), reason="", failed=False
        ),
        "renew": lambda: transitions.renew(taken),
    }[move]()
    assert not moved
    assert state(job) == ("canceled", "withdrawing", 1)


def test_refused_row_says_why_and_is_not_taken_again(database_time: DatabaseTime) -> None:
    job = new_job()
    assert transitions.refuse(taken_of(job, database_time), "closed")
    assert state(job)[1] == "refused"
    assert stored(job).dispatch_last_error == "closed"
    database_time.advance(1000)
    assert due() == []


def test_withdrawing_row_stays_so_while_claimed_and_given_back(
    database_time: DatabaseTime,
) -> None:
    job = new_job()
    cancel(ContentJob, job.pk)
    taken = taken_of(job, database_time)
    assert taken.withdrawing
    assert state(job)[1] == "withdrawing"
    assert transitions.take(ContentJob, job.pk) is None
    assert not transitions.confirm_taken(taken)
    assert transitions.give_back(taken, delay=timedelta(0), reason="later", failed=False)
    again = transitions.take(ContentJob, job.pk)
    assert again is not None
    assert not transitions.withdrawn_taken(taken)
    assert transitions.withdrawn_taken(again)
    assert state(job)[1] == "withdrawn"


def test_next_due_row_is_found_by_the_partial_index_and_not_by_a_scan() -> None:
    query = transitions.rows(ContentJob).filter(transitions.due_filter())
    plan = query.order_by("dispatch_next_at", "pk").explain()
    if connection.vendor == "sqlite":
        assert "contentjob_due" in plan


def test_row_older_than_the_mixin_is_never_due(database_time: DatabaseTime) -> None:
    job = new_job()
    force(job, dispatch_status=None)
    database_time.advance(1000)
    assert due() == []
