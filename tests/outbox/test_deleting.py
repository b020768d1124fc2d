"""Deleting: gone at once for the tenant, gone from the database when nothing runs any more."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from jobs.dispatch import recovery
from jobs.models import ContentJob, Notification, QuotaEntry
from jobs.runtime import using_kernel
from jobs.services import content, deleting, notifications
from jobs.services.errors import JobNotFound, ServiceError
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, new_job, state, stored
from tests.dispatch.test_relay import instance_of
from tests.dispatch.test_requests import CountWrites, together
from tests.outbox.test_generations import latest

pytestmark = pytest.mark.django_db(transaction=True)

NO_TIME = timedelta(0)


def test_open_job_is_canceled_by_the_write_that_deletes_it(kernel: Kernel) -> None:
    job = new_job()
    deleting.delete_job("acme", job.pk)
    assert state(job) == ("canceled", "withdrawn", 1)
    assert stored(job).deleted_at is not None
    assert instance_of(kernel, job).status == "canceled"


@pytest.mark.parametrize("status", ["ready", "failed", "canceled"])
def test_job_that_is_over_keeps_its_status(status: str, kernel: Kernel) -> None:
    job = new_job()
    force(job, status=status, dispatch_status="dispatched")
    with CountWrites() as writes:
        deleting.delete_job("acme", job.pk)
    assert len(writes.statements) == 2, "the cancel that matches nothing, and the deletion"
    assert state(job) == (status, "dispatched", 1)


def test_deleted_job_does_not_exist_for_anybody(kernel: Kernel) -> None:
    job = new_job()
    deleting.delete_job("acme", job.pk)
    for call in (
        content.get_job,
        content.retry_job,
        content.cancel_job,
        content.regenerate_job,
        deleting.delete_job,
    ):
        with pytest.raises(JobNotFound):
            call("acme", job.pk)
    assert content.list_jobs("acme") == []
    assert notifications.list_of_job("acme", job.pk) == []


def test_another_tenant_deletes_nothing(kernel: Kernel) -> None:
    job = new_job()
    with pytest.raises(JobNotFound):
        deleting.delete_job("other", job.pk)
    assert stored(job).deleted_at is None


def test_stale_copy_saved_later_does_not_bring_the_job_back(kernel: Kernel) -> None:
    job = new_job()
    stale = stored(job)
    deleting.delete_job("acme", job.pk)
    stale.source_url = "https://example.org/edited-meanwhile"
    stale.save()
    assert stored(job).deleted_at is not None
    assert state(job)[0] == "canceled"


def test_regenerate_racing_a_delete_never_starts_a_deleted_job(kernel: Kernel) -> None:
    for _ in range(4):
        job = new_job()
        force(job, status="ready", dispatch_status="dispatched")
        together(
            2,
            [
                partial(_either, content.regenerate_job, job.pk),
                partial(_either, deleting.delete_job, job.pk),
            ],
        )
        row = stored(job)
        assert row.deleted_at is not None
        assert row.status in {"ready", "canceled"}
        running = latest(kernel, job)
        assert running is None or running.status in {"canceled", "running"}
        if row.status == "canceled":
            assert row.dispatch_status in {"withdrawing", "withdrawn"}


def test_purge_takes_what_is_quiet_and_old_enough(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    old, fresh, live = new_job(), new_job(), new_job()
    deleting.delete_job("acme", old.pk)
    database_time.advance(3600)
    deleting.delete_job("acme", fresh.pk)
    purged = deleting.purge_deleted(older_than=timedelta(minutes=30))
    assert (purged.gone, purged.kept) == (1, 0)
    assert set(ContentJob.objects.values_list("pk", flat=True)) == {fresh.pk, live.pk}
    assert deleting.purge_deleted(older_than=timedelta(minutes=30)).gone == 0


def test_purge_waits_for_the_withdrawal(
    kernel: Kernel, dead_kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = new_job()
    with using_kernel(dead_kernel):
        deleting.delete_job("acme", job.pk)
    assert state(job) == ("canceled", "withdrawing", 1)
    assert deleting.purge_deleted(older_than=NO_TIME).gone == 0
    database_time.advance(3)
    assert recovery.dispatch_due().withdrawn == 1
    assert deleting.purge_deleted(older_than=NO_TIME).gone == 1


def test_purge_waits_for_the_notification_and_leaves_the_ledger(
    kernel: Kernel, database_time: DatabaseTime
) -> None:
    job = content.submit_job(
        tenant="acme",
        kind="article",
        source_url="https://example.org/a",
        options={"notify_url": "https://example.org/hook"},
    )
    content.cancel_job("acme", job.pk)
    deleting.delete_job("acme", job.pk)
    assert deleting.purge_deleted(older_than=NO_TIME).gone == 0
    Notification._base_manager.update(status="delivered")
    assert deleting.purge_deleted(older_than=NO_TIME).gone == 1
    assert not Notification.objects.exists()
    assert [entry.state for entry in QuotaEntry.objects.filter(job_id=job.pk)] == ["refunded"]


def test_purge_is_bounded(kernel: Kernel) -> None:
    for _ in range(3):
        deleting.delete_job("acme", new_job().pk)
    assert deleting.purge_deleted(older_than=NO_TIME, limit=2).gone == 2


def test_command_says_what_it_purged_and_refuses_nonsense(kernel: Kernel) -> None:
    deleting.delete_job("acme", new_job().pk)
    out = StringIO()
    call_command("purge_deleted", "--days", "0", stdout=out)
    assert out.getvalue().startswith("1 job purged")
    bound, plain = "--limit is 1 or more", "is no number from 0"
    for said, *wrong in (
        (bound, "--limit", "0"),
        (bound, "--days", "1e9"),
        (plain, "--days", "-1"),
        (plain, "--days", "nan"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("purge_deleted", *wrong)


def _either(call: Callable[[str, str], object], pk: str) -> None:
    try:
        call("acme", pk)
    except ServiceError:
        return
