"""Quotas, their ledger and notifications on the console."""

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from jobs.models import ContentJob, Notification, QuotaEntry, TenantQuota
from jobs.services import rounds
from kernel import Kernel
from tests.console.test_admin import act

QUOTAS = "/ops/jobs/tenantquota/"
LEDGER = "/ops/jobs/quotaentry/"
NOTIFICATIONS = "/ops/jobs/notification/"


@pytest.fixture
def told(kernel: Kernel, job: ContentJob) -> Notification:
    """A notification that no receiver took."""
    ContentJob._base_manager.update(options={"notify_url": "https://receiver.example/"})
    rounds.finish_failed(job.pk, 1, code="x", message="<b>why</b>")
    Notification._base_manager.update(status="failed", error_code="gone")
    return Notification.objects.get()


def test_pages_answer_and_show_their_rows(operator: Client, told: Notification) -> None:
    for path, text in ((QUOTAS, "acme"), (LEDGER, "refunded"), (NOTIFICATIONS, told.pk)):
        page = operator.get(f"{path}?q=acme")
        assert page.status_code == 200
        assert text in page.content.decode()
    page = operator.get(f"{NOTIFICATIONS}{quote(told.pk)}/change/")
    assert page.status_code == 200
    assert "&lt;b&gt;why" in page.content.decode()


@pytest.mark.parametrize("model", [TenantQuota, QuotaEntry, Notification])
def test_nothing_can_be_added_changed_or_deleted(
    operator: Client, told: Notification, model: type[TenantQuota | QuotaEntry | Notification]
) -> None:
    row = model._base_manager.values().get()
    path = f"/ops/jobs/{model._meta.model_name}/"
    key = quote(model._base_manager.get().pk)
    assert operator.post(f"{path}add/", {}).status_code == 403
    assert operator.post(f"{path}{key}/change/", {"state": "settled"}).status_code == 403
    assert operator.post(f"{path}{key}/delete/", {"post": "yes"}).status_code == 403
    act(operator, path, "delete_selected", model._base_manager.get().pk)
    assert model._base_manager.values().get() == row


def test_failed_notification_is_tried_again_by_those_who_may(
    operator: Client, viewer: Client, told: Notification
) -> None:
    assert viewer.get(NOTIFICATIONS).status_code == 403
    page = act(operator, NOTIFICATIONS, "redeliver", told.pk).content.decode()
    assert "1 notification is tried again" in page
    told.refresh_from_db()
    assert (told.status, told.dispatch_fencing_token) == ("waiting", 2)
    page = act(operator, NOTIFICATIONS, "redeliver", told.pk).content.decode()
    assert "1 notification has not failed" in page
