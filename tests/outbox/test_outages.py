"""Poison in front, and hours without MongoDB: every accepted row is worked on in the end."""

import pytest
from django.db import transaction

from jobs.dispatch import handling, relay
from jobs.dispatch.recovery import dispatch_due
from jobs.models import ContentJob
from jobs.runtime import using_kernel
from jobs.services import content
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import new_job, state
from tests.jobs.site import Site
from tests.quota.books import of_books

pytestmark = pytest.mark.django_db(transaction=True)

POISONED = 1000


def test_good_row_behind_a_thousand_poisoned_ones_is_dispatched_within_a_short_pass(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    relay.breaker.failed()
    with transaction.atomic():
        for _ in range(POISONED):
            new_job()
    good = new_job()
    relay.breaker.succeeded()
    ContentJob._base_manager.exclude(pk=good.pk).update(dispatch_type="content.unknown")
    database_time.advance(3)

    report = dispatch_due(limit=20)

    assert state(good) == ("initial", "dispatched", 1)
    assert (report.dispatched, report.deferred) == (1, 19)


def test_jobs_accepted_while_mongo_is_away_for_hours_all_finish(
    serving: Kernel,
    dead_kernel: Kernel,
    site: Site,
    database_time: DatabaseTime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handling, "RECOVERY_TIMEOUT_SECONDS", 0.1)
    with using_kernel(dead_kernel):
        jobs = [
            content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
            for _ in range(6)
        ]
        content.cancel_job("acme", jobs[0].pk)
        for _ in range(8):
            database_time.advance(1800)
            assert dispatch_due().unavailable <= 1
    assert {row.dispatch_attempts for row in ContentJob.objects.all()} == {0}

    database_time.advance(10)
    report = dispatch_due()
    assert (report.dispatched, report.withdrawn) == (5, 1)
    serving.drain(queues=["content"])
    assert {state(job) for job in jobs[1:]} == {("ready", "dispatched", 1)}
    assert state(jobs[0]) == ("canceled", "withdrawn", 1)
    assert list(of_books("acme")) == []
