"""Old copies of a row, saved late by forms and admins, never undo what the protocol decided."""

from typing import Any, ClassVar

import pytest
from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import User
from django.forms import ModelForm
from django.http import HttpRequest
from django.test import RequestFactory

from jobs.dispatch import new_round
from jobs.models import ContentJob
from jobs.services import content
from ops_console.site import OpsSite
from tests.dispatch.rows import force, new_job, stored

pytestmark = pytest.mark.django_db


class JobForm(ModelForm):  # type: ignore[type-arg]
    """What a team's own page may offer."""

    class Meta:
        """Editable columns only; the protocol's are not among a model form's fields."""

        model = ContentJob
        fields: ClassVar[list[str]] = ["source_url", "error_message"]


class JobAdmin(ModelAdmin):  # type: ignore[type-arg]
    """A team's own admin of a model with an intent."""

    fields = ("source_url",)


def failed_job() -> ContentJob:
    job = new_job()
    force(job, status="failed", dispatch_status="dispatched", error_message="why")
    return stored(job)


def test_form_opened_before_a_new_round_and_saved_after_it_leaves_the_round() -> None:
    stale = failed_job()
    form = JobForm({"source_url": "https://example.org/b"}, instance=stale)
    form.fields.pop("error_message")
    assert new_round(stored(stale)) is not None
    form.save()
    row = stored(stale)
    assert (row.status, row.round, row.dispatch_status) == ("initial", 2, "pending")
    assert (row.source_url, row.error_message) == ("https://example.org/b", "")


def test_form_that_means_to_change_a_column_of_the_round_is_told_so() -> None:
    from jobs.dispatch import GuardedColumn

    form = JobForm(
        {"source_url": "https://example.org/b", "error_message": "mine"}, instance=failed_job()
    )
    with pytest.raises(GuardedColumn, match="error_message"):
        form.save()


def test_admin_page_saved_late_leaves_the_round() -> None:
    stale = failed_job()
    assert new_round(stored(stale)) is not None
    page = JobAdmin(ContentJob, OpsSite())
    request: HttpRequest = RequestFactory().post("/")
    request.user = User.objects.create_superuser("editor")
    form_class: Any = page.get_form(request, stale, change=True)
    form = form_class({"source_url": "https://example.org/c"}, instance=stale)
    page.save_model(request, form.save(commit=False), form, change=True)
    row = stored(stale)
    assert (row.status, row.round, row.source_url) == ("initial", 2, "https://example.org/c")


def test_refreshed_copy_keeps_what_the_next_generation_set() -> None:
    stale = failed_job()
    content.regenerate_job("acme", stale.pk)
    stale.refresh_from_db()
    stale.save()
    row = stored(stale)
    assert (row.round, row.dispatch_biz_key) == (2, f"{stale.dispatch_key()}:g2")


def test_bulk_update_with_old_copies_leaves_the_round() -> None:
    stale = failed_job()
    assert new_round(stored(stale)) is not None
    stale.source_url = "https://example.org/d"
    assert ContentJob.objects.bulk_update([stale], ["source_url"]) == 1
    row = stored(stale)
    assert (row.status, row.round, row.source_url) == ("initial", 2, "https://example.org/d")
