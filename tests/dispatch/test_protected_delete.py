"""A row whose work is not over cannot be deleted."""

import pytest
from django.contrib.auth import get_user_model
from django.db import models, transaction

from jobs.dispatch import cancel
from jobs.models import ContentJob
from tests.dispatch.rows import force, new_job, stored

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("status", "dispatch_status"),
    [
        ("initial", "pending"),
        ("generating", "processing"),
        ("generating", "dispatched"),
        ("generating", "refused"),
        ("ready", "pending"),
        ("canceled", "withdrawing"),
    ],
)
def test_live_row_is_protected_and_the_error_names_cancel(
    status: str, dispatch_status: str
) -> None:
    job = new_job()
    force(job, status=status, dispatch_status=dispatch_status)
    with pytest.raises(models.ProtectedError, match="cancel it first"), transaction.atomic():
        stored(job).delete()
    assert ContentJob.objects.filter(pk=job.pk).exists()


@pytest.mark.parametrize(
    ("status", "dispatch_status"),
    [
        ("ready", "dispatched"),
        ("failed", "dispatched"),
        ("canceled", "withdrawn"),
        ("failed", "refused"),
        ("initial", None),
    ],
)
def test_row_that_is_over_or_older_than_the_mixin_can_be_deleted(
    status: str, dispatch_status: str | None
) -> None:
    job = new_job()
    force(job, status=status, dispatch_status=dispatch_status)
    stored(job).delete()
    assert not ContentJob.objects.filter(pk=job.pk).exists()


def test_object_that_looks_over_but_is_stale_is_protected() -> None:
    job = new_job()
    force(job, status="failed", dispatch_status="dispatched")
    stale = stored(job)
    force(job, status="initial", dispatch_status="pending", dispatch_fencing_token=2)
    with pytest.raises(models.ProtectedError), transaction.atomic():
        stale.delete()


def test_queryset_delete_with_one_live_row_deletes_nothing() -> None:
    over, live = new_job(), new_job()
    force(over, status="ready", dispatch_status="dispatched")
    with pytest.raises(models.ProtectedError), transaction.atomic():
        ContentJob.objects.all().delete()
    assert set(ContentJob.objects.values_list("pk", flat=True)) == {over.pk, live.pk}


def test_deleting_the_user_keeps_the_job() -> None:
    user = get_user_model().objects.create_user("someone")
    job = new_job(created_by=user)
    user.delete()
    assert stored(job).created_by_id is None


def test_canceled_row_can_be_deleted_once_withdrawn() -> None:
    job = new_job()
    cancel(ContentJob, job.pk)
    with pytest.raises(models.ProtectedError), transaction.atomic():
        stored(job).delete()
    force(job, dispatch_status="withdrawn")
    stored(job).delete()
