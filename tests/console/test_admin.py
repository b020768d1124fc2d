"""Jobs and tokens on the console."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from jobs.models import ApiToken, ContentJob
from jobs.services import access
from ops_console.site import OpsSite

JOBS = "/ops/jobs/contentjob/"
TOKENS = "/ops/jobs/apitoken/"


def act(browser: Client, address: str, action: str, *keys: object) -> Any:
    """Run an action on rows and return the page that follows."""
    form = {"action": action, "_selected_action": [str(key) for key in keys]}
    return browser.post(address, form, follow=True)


def test_the_site_is_the_console_and_shuts_out_strangers(transactional_db: None) -> None:
    assert isinstance(admin.site, OpsSite)
    for path in ("/ops/", JOBS, TOKENS):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/ops/login/?next={path}")
    assert Client().get("/")["Location"] == "/ops/"
    assert Client().get("/favicon.ico")["Content-Type"] == "image/svg+xml"


def test_every_page_answers(operator: Client, job: ContentJob) -> None:
    for path in ("/ops/", JOBS, f"{JOBS}{quote(job.pk)}/change/", TOKENS, f"{TOKENS}add/"):
        assert operator.get(path, follow=True).status_code == 200, path
    for query in ("?q=acme", "?status=initial", "?dispatch_status=dispatched", "?o=1"):
        answer = operator.get(JOBS + query)
        assert job.pk in answer.content.decode(), query


def test_what_clients_sent_is_shown_as_text(operator: Client, job: ContentJob) -> None:
    page = operator.get(f"{JOBS}{quote(job.pk)}/change/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;: &quot;javascript:alert(1)&quot;" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_no_job_can_be_added_edited_or_deleted(operator: Client, job: ContentJob) -> None:
    assert operator.get(f"{JOBS}add/").status_code == 403
    assert operator.post(f"{JOBS}add/", {}).status_code == 403
    assert operator.post(f"{JOBS}{quote(job.pk)}/delete/", {"post": "yes"}).status_code == 403
    before = ContentJob.objects.values().get()
    changes = {"status": "ready", "title": "x", "dispatch_status": "withdrawn"}
    assert operator.post(f"{JOBS}{quote(job.pk)}/change/", changes).status_code == 403
    act(operator, JOBS, "delete_selected", job.pk)
    assert ContentJob.objects.values().get() == before
    page = operator.get(f"{JOBS}{quote(job.pk)}/change/").content.decode()
    assert "dispatch_biz_key" in page.replace("Dispatch biz key", "dispatch_biz_key")
    assert not re.search(r'<(input|textarea|select)[^>]*name="dispatch_', page)


def test_actions_go_through_the_services_and_say_what_was_refused(
    operator: Client, job: ContentJob
) -> None:
    refused = act(operator, JOBS, "retry_jobs", job.pk)
    assert "Refused" in refused.content.decode()
    canceled = act(operator, JOBS, "cancel_jobs", job.pk)
    assert "1 job canceled." in canceled.content.decode()
    job.refresh_from_db()
    assert (job.status, job.dispatch_status) == ("canceled", "withdrawn")


def test_a_failed_job_is_retried_from_the_console(operator: Client, job: ContentJob) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_contentjob SET status = 'failed'")
    assert "1 job accepted for retry." in act(operator, JOBS, "retry_jobs", job.pk).content.decode()
    job.refresh_from_db()
    assert (job.status, job.round) == ("initial", 2)


def test_a_viewer_sees_jobs_and_can_do_nothing(viewer: Client, job: ContentJob) -> None:
    page = viewer.get(JOBS)
    assert page.status_code == 200
    assert "cancel_jobs" not in page.content.decode()
    act(viewer, JOBS, "cancel_jobs", job.pk)
    job.refresh_from_db()
    assert job.status == "initial"
    assert viewer.get(TOKENS).status_code == 403


@pytest.fixture
def issued(operator: Client) -> str:
    """Issue a token by the form and return what the page showed."""
    form = {
        "name": "front end",
        "tenant": "acme",
        "user": User.objects.get(username="operator").pk,
        "expires_at_0": "",
        "expires_at_1": "",
    }
    page = operator.post(f"{TOKENS}add/", form, follow=True)
    found = re.search(r"baton_[A-Za-z0-9_-]{43}", page.content.decode())
    assert found is not None, page.content.decode()
    return found[0]


def test_a_new_token_is_shown_once_and_works(operator: Client, issued: str) -> None:
    token = access.authenticate(issued)
    assert token is not None
    assert (token.tenant, token.name) == ("acme", "front end")
    assert ApiToken.objects.count() == 1
    assert f'field-id">{token.pk}<' in operator.get(TOKENS).content.decode()
    for path in (
        TOKENS,
        f"{TOKENS}{quote(token.pk)}/change/",
        f"{TOKENS}{quote(token.pk)}/history/",
    ):
        page = operator.get(path).content.decode()
        assert issued not in page
        assert token.token_hash not in page


def test_a_token_is_revoked_and_stays_on_record(operator: Client, issued: str) -> None:
    token = ApiToken.objects.get()
    assert "1 token revoked." in act(operator, TOKENS, "revoke", token.pk).content.decode()
    assert access.authenticate(issued) is None
    assert operator.post(f"{TOKENS}{quote(token.pk)}/delete/", {"post": "yes"}).status_code == 403
    assert (
        operator.post(f"{TOKENS}{quote(token.pk)}/change/", {"tenant": "globex"}).status_code == 403
    )
    assert ApiToken.objects.get().tenant == "acme"


@pytest.mark.parametrize("tenant", ["Not A Slug", "-x", "a_b"])
def test_a_wrong_tenant_is_told_on_the_form(operator: Client, tenant: str) -> None:
    form = {"name": "x", "tenant": tenant, "user": User.objects.get().pk}
    page = operator.post(f"{TOKENS}add/", {**form, "expires_at_0": "", "expires_at_1": ""})
    assert page.status_code == 200
    assert "slug" in page.content.decode()
    assert ApiToken.objects.count() == 0
