"""Rows older than the mixin get intents: shown first, decided by the team, each by one write."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.dispatch import Adoption, Decision, adopt, recovery
from jobs.models import ContentJob
from jobs.services import content
from kernel import Kernel, Priority
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, new_job, state, stored
from tests.dispatch.test_relay import instance_of

pytestmark = pytest.mark.django_db(transaction=True)

BARE: dict[str, Any] = {
    "dispatch_status": None,
    "dispatch_type": None,
    "dispatch_biz_key": None,
    "dispatch_fencing_token": None,
    "dispatch_input": None,
    "dispatch_priority": None,
    "dispatch_next_at": None,
}
HERE = "tests.outbox.test_adoption"


def old_job(status: str) -> ContentJob:
    """Give a row as it was before the mixin."""
    from jobs.dispatch import relay

    relay.breaker.failed()
    job = new_job()
    relay.breaker.succeeded()
    force(job, status=status, **BARE)
    return job


def run_everything(row: ContentJob) -> Adoption:
    """Decide as a team does that knows its old system is switched off."""
    open_ = row.status in {"initial", "generating"}
    return Adoption(
        decision=Decision.RUN if open_ else Decision.OVER,
        biz_key=f"legacy:{row.pk}",
        fencing_token=3,
    )


def one_name_for_all(row: ContentJob) -> Adoption:
    return Adoption(decision=Decision.RUN, biz_key="the same")


def too_much(row: ContentJob) -> Adoption:
    return Adoption(decision=Decision.RUN, input={"text": "x" * 3_000_000})


def broken(row: ContentJob) -> Adoption:
    raise KeyError("a column nobody filled")


def test_without_a_function_only_what_is_over_is_adopted(kernel: Kernel) -> None:
    over = [old_job(status) for status in ("ready", "failed", "canceled")]
    open_ = [old_job(status) for status in ("initial", "generating")]
    outcomes = {found.pk: found.outcome for found in adopt(ContentJob, apply=True)}
    assert {outcomes[job.pk] for job in over} == {"over"}
    assert {outcomes[job.pk] for job in open_} == {"leave"}
    assert {state(job)[1] for job in over} == {"withdrawn"}
    assert {state(job)[1] for job in open_} == {None}


def test_dry_run_writes_nothing(kernel: Kernel) -> None:
    job = old_job("ready")
    (found,) = adopt(ContentJob)
    assert (found.outcome, found.status) == ("over", "ready")
    assert state(job) == ("ready", None, 0)


def test_adopted_open_row_runs_under_the_team_s_name_and_number(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = old_job("generating")
    assert [found.outcome for found in adopt(ContentJob, run_everything, apply=True)] == ["run"]
    row = stored(job)
    assert (row.status, row.dispatch_status, row.round) == ("generating", "pending", 3)
    assert row.dispatch_priority == Priority.RECOVERY
    database_time.advance(1)
    assert recovery.dispatch_due().dispatched == 1
    instance = kernel.find(biz_key=f"legacy:{job.pk}")
    assert instance is not None
    assert (instance.fencing_token, instance.input["job_id"]) == (3, job.pk)
    assert instance_of(kernel, job) is None


def test_adopted_failed_row_can_be_retried_and_a_ready_one_done_over(kernel: Kernel) -> None:
    failed, ready = old_job("failed"), old_job("ready")
    list(adopt(ContentJob, apply=True))
    assert content.retry_job("acme", failed.pk).round == 2
    assert content.regenerate_job("acme", ready.pk).round == 2
    assert state(failed) == state(ready) == ("initial", "dispatched", 2)


def test_repeat_finds_only_what_was_left(kernel: Kernel) -> None:
    old_job("ready")
    left = old_job("initial")
    assert len(list(adopt(ContentJob, apply=True))) == 2
    assert [found.pk for found in adopt(ContentJob, apply=True)] == [left.pk]


def test_rows_with_an_intent_are_never_looked_at(kernel: Kernel) -> None:
    new_job()
    assert list(adopt(ContentJob, run_everything, apply=True)) == []


def test_row_that_moves_between_reading_and_writing_is_left(kernel: Kernel) -> None:
    job = old_job("initial")

    def finish_meanwhile(row: ContentJob) -> Adoption:
        force(job, status="ready")
        return run_everything(row)

    assert [f.outcome for f in adopt(ContentJob, finish_meanwhile, apply=True)] == ["moved"]
    assert state(job) == ("ready", None, 0)


def test_every_row_is_seen_once_in_bounded_batches(kernel: Kernel) -> None:
    jobs = [old_job("ready") for _ in range(7)]
    seen = [found.pk for found in adopt(ContentJob, batch=2)]
    assert seen == sorted(job.pk for job in jobs)
    assert len(list(adopt(ContentJob, batch=2, limit=3))) == 3


@pytest.mark.parametrize(
    ("decide", "says"),
    [(one_name_for_all, "biz_key"), (too_much, "bytes"), (broken, "a column nobody filled")],
)
def test_one_row_s_trouble_is_its_own(decide: Any, says: str, kernel: Kernel) -> None:
    jobs = sorted([old_job("initial"), old_job("initial")], key=lambda job: job.pk)
    found = list(adopt(ContentJob, decide, apply=True))
    assert [one.pk for one in found] == [job.pk for job in jobs]
    assert found[-1].outcome == "problem"
    assert says in found[-1].detail
    assert state(jobs[-1])[1] is None


def test_row_that_is_over_is_not_run(kernel: Kernel) -> None:
    job = old_job("ready")
    (found,) = adopt(ContentJob, one_name_for_all, apply=True)
    assert found.outcome == "problem"
    assert "retry" in found.detail
    assert state(job) == ("ready", None, 0)


def test_team_s_ledger_is_written_in_the_same_transaction(kernel: Kernel) -> None:
    job = old_job("initial")

    def refuse(_: object) -> None:
        raise LookupError("no account for it")

    def decide(row: ContentJob) -> Adoption:
        return Adoption(decision=Decision.RUN, and_then=refuse)

    (found,) = adopt(ContentJob, decide, apply=True)
    assert found.outcome == "problem"
    assert state(job)[1] is None


class TestCommand:
    def test_shows_first_and_writes_on_request(self, kernel: Kernel) -> None:
        job = old_job("ready")
        out = StringIO()
        call_command("adopt", "jobs.ContentJob", stdout=out)
        assert "1 over." in out.getvalue()
        assert "repeat with --apply" in out.getvalue()
        assert state(job)[1] is None
        call_command("adopt", "jobs.ContentJob", "--apply", stdout=out)
        assert state(job)[1] == "withdrawn"

    def test_uses_the_team_s_function(self, kernel: Kernel) -> None:
        job = old_job("initial")
        with_function = ("--with", f"{HERE}.run_everything")
        call_command("adopt", "jobs.ContentJob", "--apply", *with_function, stdout=StringIO())
        assert stored(job).dispatch_biz_key == f"legacy:{job.pk}"

    def test_ends_with_an_error_when_a_row_had_a_problem(self, kernel: Kernel) -> None:
        old_job("initial")
        out = StringIO()
        with pytest.raises(CommandError, match="1 row could not be adopted"):
            call_command("adopt", "jobs.ContentJob", "--with", f"{HERE}.broken", stdout=out)
        assert "a column nobody filled" in out.getvalue()

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["jobs.Nothing"], "no model"),
            (["nonsense"], "no model"),
            (["jobs.ApiToken"], "no dispatch intent"),
            (["jobs.ContentJob", "--with", "nothing"], "--with nothing"),
            (["jobs.ContentJob", "--with", "tests.missing.f"], "--with tests.missing.f"),
            (["jobs.ContentJob", "--with", f"{HERE}.HERE"], "no function"),
            (["jobs.ContentJob", "--batch", "0"], "above zero"),
            (["jobs.ContentJob", "--limit", "-1"], "from 0 to"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(
        self, arguments: list[str], says: str, kernel: Kernel
    ) -> None:
        with pytest.raises(CommandError, match=says):
            call_command("adopt", *arguments, stdout=StringIO())
