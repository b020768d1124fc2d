"""Install, new round, cancel: one write each, one winner each."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import pytest
from django.db import IntegrityError, connection, connections, transaction

from jobs.dispatch import CancelOutcome, NotInstalled, cancel, install, new_round
from jobs.dispatch.errors import IncompleteMapping
from jobs.models import ContentJob
from kernel import Priority
from tests.dispatch.rows import force, new_job, state, stored


@pytest.mark.django_db
class TestInstall:
    def test_object_and_intent_are_one_insert(self) -> None:
        with CountWrites() as writes:
            job = new_job()
        assert [sql.split()[0] for sql in writes.statements] == ["INSERT"]
        row = stored(job)
        assert (row.status, row.dispatch_status, row.round) == ("initial", "pending", 1)
        assert row.dispatch_type == "content.article"
        assert row.dispatch_biz_key == f"content.article:acme:{job.pk}"
        assert row.dispatch_input["input"]["job_id"] == job.pk
        assert row.dispatch_input["fencing_token"] == 1
        assert row.dispatch_priority == Priority.ASYNC

    def test_installed_object_reads_its_next_turn_from_the_database(self) -> None:
        job = new_job()
        assert job.dispatch_next_at == stored(job).dispatch_next_at

    def test_same_key_twice_is_refused_and_writes_nothing(self) -> None:
        job = new_job()
        with pytest.raises(IntegrityError), transaction.atomic():
            new_job(id=job.pk)
        assert ContentJob.objects.count() == 1

    def test_existing_row_is_refused(self) -> None:
        with pytest.raises(IncompleteMapping, match="new_round"):
            install(stored(new_job()))


@pytest.mark.django_db
class TestNewRound:
    def test_failed_row_gets_a_whole_new_intent_in_one_update(self) -> None:
        job = new_job()
        force(
            job,
            status="failed",
            error_code="timeout",
            error_message="x",
            title="t",
            dispatch_status="dispatched",
            dispatch_attempts=3,
            dispatch_last_error="old",
        )
        row = stored(job)
        with CountWrites() as writes:
            intent = new_round(row)
        assert [sql.split()[0] for sql in writes.statements] == ["UPDATE"]
        assert intent is not None
        row = stored(job)
        assert (row.status, row.dispatch_status, row.round) == ("initial", "pending", 2)
        assert (row.error_code, row.error_message, row.title) == ("", "", "")
        assert (row.dispatch_attempts, row.dispatch_last_error) == (0, "")
        assert row.dispatch_input == intent.snapshot()
        assert row.dispatch_input["fencing_token"] == 2

    @pytest.mark.parametrize("status", ["initial", "generating", "ready", "canceled"])
    def test_row_that_is_not_failed_gets_none(self, status: str) -> None:
        job = new_job()
        force(job, status=status)
        assert new_round(stored(job)) is None
        assert stored(job).round == 1

    def test_belief_in_an_old_round_gets_none(self) -> None:
        job = new_job()
        force(job, status="failed")
        believed = stored(job)
        force(job, dispatch_fencing_token=2)
        assert new_round(believed) is None
        assert stored(job).round == 2

    def test_row_older_than_the_mixin_is_refused(self) -> None:
        job = new_job()
        force(job, dispatch_fencing_token=None, dispatch_status=None)
        with pytest.raises(NotInstalled):
            new_round(stored(job))


@pytest.mark.django_db
class TestCancel:
    @pytest.mark.parametrize("dispatch", ["pending", "processing", "dispatched", "refused"])
    def test_open_job_is_canceled_from_every_dispatch_state_in_one_update(
        self, dispatch: str
    ) -> None:
        job = new_job()
        force(job, status="generating", dispatch_status=dispatch, dispatch_claim_token="held")
        with CountWrites() as writes:
            outcome = cancel(ContentJob, job.pk)
        assert outcome is CancelOutcome.CANCELED
        assert [sql.split()[0] for sql in writes.statements] == ["UPDATE"]
        assert state(job) == ("canceled", "withdrawing", 1)
        assert stored(job).dispatch_claim_token is None

    def test_repeated_cancel_is_the_same_answer_and_reopens_nothing(self) -> None:
        job = new_job()
        cancel(ContentJob, job.pk)
        force(job, dispatch_status="withdrawn")
        assert cancel(ContentJob, job.pk) is CancelOutcome.ALREADY_CANCELED
        assert state(job) == ("canceled", "withdrawn", 1)

    @pytest.mark.parametrize("status", ["ready", "failed"])
    def test_job_that_is_over_stays_so(self, status: str) -> None:
        job = new_job()
        force(job, status=status, dispatch_status="dispatched")
        assert cancel(ContentJob, job.pk) is CancelOutcome.OVER
        assert state(job) == (status, "dispatched", 1)

    def test_missing_job_is_gone(self) -> None:
        assert cancel(ContentJob, "job_none") is CancelOutcome.GONE

    def test_cancel_ignores_a_broken_snapshot(self) -> None:
        job = new_job()
        force(job, dispatch_input=None)
        assert cancel(ContentJob, job.pk) is CancelOutcome.CANCELED

    def test_row_older_than_the_mixin_is_refused(self) -> None:
        job = new_job()
        force(job, dispatch_status=None)
        with pytest.raises(NotInstalled):
            cancel(ContentJob, job.pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("kernel")
class TestRaces:
    def test_of_racing_new_rounds_exactly_one_wins(self) -> None:
        job = new_job()
        force(job, status="failed", dispatch_status="dispatched")
        intents = together(8, lambda: new_round(stored(job)))
        assert len([intent for intent in intents if intent is not None]) == 1
        assert stored(job).round == 2

    def test_cancel_racing_a_new_round_leaves_a_consistent_row(self) -> None:
        for _ in range(5):
            job = new_job()
            force(job, status="failed", dispatch_status="dispatched")
            calls: list[Callable[[], Any]] = [
                partial(new_round, stored(job)),
                partial(cancel, ContentJob, job.pk),
            ]
            outcome = together(2, calls)[1]
            if outcome is CancelOutcome.OVER:
                assert state(job)[0] in {"initial", "generating"}
                assert state(job)[2] == 2
            else:
                assert state(job)[0] == "canceled"
                assert state(job)[1] in {"withdrawing", "withdrawn"}


def together(count: int, call: Callable[[], Any] | list[Callable[[], Any]]) -> list[Any]:
    """Run calls in threads that start at the same moment; give their results in order."""
    calls = call if isinstance(call, list) else [call] * count
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            barrier.wait(timeout=10)
            results[index] = calls[index]()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return results


class CountWrites:
    """Collects the INSERT, UPDATE and DELETE statements of a block."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._wrapper = connection.execute_wrapper(self._collect)

    def __enter__(self) -> Self:
        self._wrapper.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._wrapper.__exit__(None, None, None)

    def _collect(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.split(maxsplit=1)[0] in {"INSERT", "UPDATE", "DELETE"}:
            self.statements.append(sql)
        return execute(sql, params, many, context)
