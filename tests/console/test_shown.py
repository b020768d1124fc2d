"""A row's page shows every column: JSON as JSON, moments as the API tells them."""

from django.contrib.admin.utils import quote
from django.test import Client

from jobs.models import ApiToken, ContentJob, Notification, TenantQuota
from jobs.services import rounds
from kernel import Kernel


def page_of(operator: Client, row: ContentJob | Notification | TenantQuota) -> str:
    """Fetch a row's page."""
    address = f"/ops/jobs/{row._meta.model_name}/{quote(row.pk)}/change/"
    return operator.get(address).content.decode()


def test_a_page_shows_every_column_and_python_nowhere(
    operator: Client, kernel: Kernel, job: ContentJob
) -> None:
    ContentJob._base_manager.update(options={"notify_url": "https://receiver.example/"})
    rounds.finish_failed(job.pk, 1, code="x", message="y")
    for row in (ContentJob.objects.get(), Notification.objects.get(), TenantQuota.objects.get()):
        page = page_of(operator, row)
        for field in row._meta.concrete_fields:
            assert f'class="form-row field-{field.name}"' in page, field.name
        assert "{&#x27;" not in page
        assert "None" not in page
    assert "&quot;notify_url&quot;: &quot;https://receiver.example/&quot;" in page_of(operator, job)
    told = Notification.objects.get()
    assert "&quot;type&quot;: &quot;job.failed&quot;" in page_of(operator, told)
    assert f"{told.created_at:%Y-%m-%d %H:%M:%SZ}" in page_of(operator, told)


def test_a_wrong_tenant_is_told_at_its_field_in_a_persons_words(operator: Client) -> None:
    form = {"name": "x", "tenant": "-x", "user": 1, "expires_at_0": "", "expires_at_1": ""}
    page = operator.post("/ops/jobs/apitoken/add/", form).content.decode()
    assert "A tenant is a slug" in page
    assert "/tenant:" not in page
    assert ApiToken.objects.count() == 0
