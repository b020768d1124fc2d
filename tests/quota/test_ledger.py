"""Each round is reserved once with its install, and settled or refunded once with its end."""

from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction

from jobs.models import ContentJob, QuotaEntry, TenantQuota
from jobs.services import content, deleting, quota, rounds
from jobs.services.errors import QuotaExceeded, RoundInProgress, ServiceError
from kernel import Kernel
from tests.dispatch.rows import force, state
from tests.dispatch.test_requests import together
from tests.jobs.site import Site
from tests.quota.books import of_books

pytestmark = pytest.mark.django_db(transaction=True)

submit = partial(
    content.submit_job, tenant="acme", kind="article", source_url="https://example.org/a"
)


def entries(job: ContentJob) -> list[tuple[int, str]]:
    found = QuotaEntry.objects.filter(job_id=job.pk).order_by("round")
    return list(found.values_list("round", "state"))


def counted(tenant: str = "acme") -> tuple[int, int]:
    standing = quota.standing_of(tenant)
    return standing.reserved, standing.settled


class TestLife:
    def test_ready_round_is_settled_and_a_failed_one_refunded(
        self, serving: Kernel, site: Site
    ) -> None:
        good = submit(source_url=f"{site.url}/tides")
        bad = submit(source_url=f"{site.url}/missing")
        assert counted() == (2, 0)
        serving.drain(queues=["content"])
        assert (entries(good), entries(bad)) == ([(1, "settled")], [(1, "refunded")])
        assert counted() == (0, 1)

    def test_each_round_has_its_own_entry_over_retries_and_generations(
        self, kernel: Kernel
    ) -> None:
        job = submit()
        rounds.finish_failed(job.pk, 1, code="x", message="")
        fail_instance(kernel)
        content.retry_job("acme", job.pk)
        rounds.finish_ready(job.pk, 2, title="", result={})
        content.regenerate_job("acme", job.pk)
        content.cancel_job("acme", job.pk)
        content.regenerate_job("acme", job.pk)
        assert entries(job) == [
            (1, "refunded"),
            (2, "settled"),
            (3, "refunded"),
            (4, "reserved"),
        ]
        assert counted() == (1, 1)
        assert list(of_books("acme")) == []

    def test_refused_round_is_refunded_when_it_is_done_over_or_canceled(
        self, kernel: Kernel
    ) -> None:
        over, canceled = submit(), submit()
        for job in (over, canceled):
            force(job, dispatch_status="refused")
        content.regenerate_job("acme", over.pk)
        content.cancel_job("acme", canceled.pk)
        assert entries(over) == [(1, "refunded"), (2, "reserved")]
        assert entries(canceled) == [(1, "refunded")]

    def test_deleted_job_s_entry_stays_in_the_ledger(self, kernel: Kernel) -> None:
        job = submit()
        deleting.delete_job("acme", job.pk)
        assert entries(job) == [(1, "refunded")]
        assert counted() == (0, 0)

    @pytest.mark.parametrize("first", ["ready", "failed", "canceled"])
    def test_nothing_late_moves_an_entry_a_second_time(self, first: str, kernel: Kernel) -> None:
        job = submit()
        ends: dict[str, Callable[[], object]] = {
            "ready": lambda: rounds.finish_ready(job.pk, 1, title="", result={}),
            "failed": lambda: rounds.finish_failed(job.pk, 1, code="x", message=""),
            "canceled": lambda: tried(content.cancel_job, job.pk),
        }
        ends[first]()
        before = (entries(job), counted())
        for end in [*ends.values(), ends[first]]:
            end()
        assert (entries(job), counted()) == before

    def test_finalizer_makes_good_what_somebody_else_left_out(self, kernel: Kernel) -> None:
        job = submit()
        force(job, status="ready")
        rounds.finish_ready(job.pk, 1, title="", result={})
        assert entries(job) == [(1, "settled")]

    def test_job_without_an_entry_ends_without_one(self, kernel: Kernel) -> None:
        job = submit()
        QuotaEntry.objects.all().delete()
        TenantQuota.objects.all().delete()
        assert rounds.finish_ready(job.pk, 1, title="", result={}).done
        assert counted() == (0, 0)


class TestLimit:
    def test_tenant_nobody_limited_is_counted_and_not_refused(self, kernel: Kernel) -> None:
        for _ in range(3):
            submit()
        assert quota.standing_of("acme").available is None
        assert counted() == (3, 0)

    def test_over_the_limit_nothing_is_written(self, kernel: Kernel) -> None:
        quota.set_limit("acme", 1)
        submit()
        with pytest.raises(QuotaExceeded, match="1 of 1") as caught:
            submit()
        assert (caught.value.limit, caught.value.used) == (1, 1)
        assert ContentJob.objects.count() == QuotaEntry.objects.count() == 1
        submit(tenant="other")

    def test_over_the_limit_a_retry_leaves_the_failed_round_as_it_was(self, kernel: Kernel) -> None:
        job = submit()
        rounds.finish_failed(job.pk, 1, code="x", message="why")
        quota.set_limit("acme", 0)
        for again in (content.retry_job, content.regenerate_job):
            with pytest.raises(QuotaExceeded):
                again("acme", job.pk)
        row = content.get_job("acme", job.pk)
        assert (row.status, row.round, row.error_message) == ("failed", 1, "why")
        assert entries(job) == [(1, "refunded")]

    def test_what_is_settled_counts_and_what_comes_to_nothing_does_not(
        self, kernel: Kernel
    ) -> None:
        quota.set_limit("acme", 2)
        ready, canceled = submit(), submit()
        rounds.finish_ready(ready.pk, 1, title="", result={})
        content.cancel_job("acme", canceled.pk)
        assert quota.standing_of("acme").available == 1
        submit()
        with pytest.raises(QuotaExceeded):
            submit()

    def test_lower_limit_ends_nothing_and_a_lifted_one_lets_on(self, kernel: Kernel) -> None:
        jobs = [submit() for _ in range(3)]
        assert quota.set_limit("acme", 1).available == 0
        assert {state(job)[0] for job in jobs} == {"initial"}
        with pytest.raises(QuotaExceeded):
            submit()
        quota.set_limit("acme", None)
        submit()

    def test_negative_limit_is_no_limit(self, kernel: Kernel) -> None:
        with pytest.raises(ValueError, match="zero or more"):
            quota.set_limit("acme", -1)


class TestRaces:
    def test_of_many_racing_requests_exactly_the_limit_is_accepted(self, kernel: Kernel) -> None:
        quota.set_limit("acme", 3)
        answers = together(10, lambda: tried(lambda *_: submit(), ""))
        assert sorted(answers) == ["ok"] * 3 + ["quota_exceeded"] * 7
        assert counted() == (3, 0)
        assert list(of_books("acme")) == []

    def test_first_requests_of_a_new_tenant_agree_on_its_counters(self, kernel: Kernel) -> None:
        assert together(6, lambda: tried(lambda *_: submit(), "")) == ["ok"] * 6
        assert counted() == (6, 0)
        assert quota.differences() == []

    def test_end_racing_a_cancel_moves_the_entry_once(self, kernel: Kernel) -> None:
        for _ in range(5):
            job = submit()
            together(
                2,
                [
                    partial(rounds.finish_ready, job.pk, 1, title="", result={}),
                    partial(tried, content.cancel_job, job.pk),
                ],
            )
            assert list(of_books("acme")) == []

    def test_racing_retries_reserve_one_round(self, kernel: Kernel) -> None:
        job = submit()
        rounds.finish_failed(job.pk, 1, code="x", message="")
        answers = together(6, lambda: tried(content.retry_job, job.pk))
        assert sorted(answers) == ["ok"] + [RoundInProgress.code] * 5
        assert entries(job) == [(1, "refunded"), (2, "reserved")]


class TestGuards:
    def test_ledger_outside_a_transaction_is_our_own_mistake(self, kernel: Kernel) -> None:
        with pytest.raises(AssertionError, match="status that causes it"):
            quota.refund("job_x", 1)

    def test_database_refuses_counters_below_zero(self, kernel: Kernel) -> None:
        submit()
        with pytest.raises(DatabaseError), transaction.atomic():
            TenantQuota.objects.update(reserved=-1)

    def test_round_is_never_reserved_twice(self, kernel: Kernel) -> None:
        job = submit()
        with pytest.raises(DatabaseError), transaction.atomic():
            quota.reserve("acme", job.pk, 1)
        assert counted() == (1, 0)


class TestCommand:
    def test_limit_is_set_and_shown(self, kernel: Kernel) -> None:
        submit()
        out = StringIO()
        call_command("quota", "set", "acme", "--limit", "5", stdout=out)
        assert out.getvalue().split()[-5:] == ["acme", "5", "1", "0", "4"]
        call_command("quota", "set", "acme", "--unlimited", stdout=out)
        assert out.getvalue().split()[-1] == "unlimited"
        call_command("quota", "show", stdout=out)
        call_command("quota", "show", "nobody-yet", stdout=out)
        assert out.getvalue().split()[-5:] == ["nobody-yet", "unlimited", "0", "0", "unlimited"]

    @pytest.mark.parametrize(
        "arguments", [("set", "No Slug", "--limit", "5"), ("set", "acme", "--limit", "-5")]
    )
    def test_nonsense_is_refused_with_a_sentence(
        self, arguments: tuple[str, ...], kernel: Kernel
    ) -> None:
        with pytest.raises(CommandError):
            call_command("quota", *arguments, stdout=StringIO())
        assert not TenantQuota.objects.exists()

    def test_check_finds_what_was_written_past_the_ledger(self, kernel: Kernel) -> None:
        submit()
        out = StringIO()
        call_command("quota", "check", stdout=out)
        assert "agree" in out.getvalue()
        TenantQuota.objects.update(reserved=7)
        with pytest.raises(CommandError, match="1 tenant with counters that differ"):
            call_command("quota", "check", stdout=out)
        assert "counted 7 reserved" in out.getvalue()


def tried(call: Callable[..., Any], pk: str) -> str:
    """Call a service and give `ok`, or its refusal's code."""
    try:
        call("acme", pk)
    except ServiceError as refused:
        return refused.code
    return "ok"


def fail_instance(kernel: Kernel) -> None:
    from tests.dispatch.failing import register_refusing_article

    register_refusing_article(kernel)
    kernel.drain(queues=["content"])
