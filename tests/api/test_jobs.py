"""The calls on jobs: what they answer and what they leave behind."""

from datetime import datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from jobs.models import ContentJob
from kernel import Kernel
from tests.api.callers import ARTICLE, Caller, slug_of


def fail(job_id: str) -> None:
    """Put a job where only its workflow could have put it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_contentjob SET status = 'failed', error_code = 'not_found',"
            " error_message = 'There is no page.' WHERE id = %s",
            [job_id],
        )


def test_a_request_is_accepted_stored_and_dispatched(acme: Caller, kernel: Kernel) -> None:
    answer = acme.post("jobs", {**ARTICLE, "options": {"max_sentences": 3}, "priority": "realtime"})
    assert answer.status_code == 202
    body = answer.json()
    assert set(body) == {"id", "status", "round", "links"}
    assert (body["status"], body["round"]) == ("initial", 1)
    assert (
        answer["Location"] == body["links"]["self"] == f"http://testserver/api/v1/jobs/{body['id']}"
    )
    assert answer["Cache-Control"] == "no-store"
    stored = ContentJob.objects.get(pk=body["id"])
    assert (stored.tenant, stored.created_by) == ("acme", acme.user)
    assert stored.options == {"max_sentences": 3, "language": None}
    instance = kernel.find(biz_key=stored.dispatch_biz_key or "")
    assert instance is not None
    assert (instance.type, instance.priority) == ("content.article", 0)


def test_a_job_is_read_with_its_progress(acme: Caller) -> None:
    job = acme.job(acme.submit(metadata={"order": 42})["id"])
    assert job["metadata"] == {"order": 42}
    assert job["error"] is None
    assert job["result"] is None
    assert job["waiting"] is None
    assert job["workflow_id"].startswith("wf_")
    assert (job["progress"]["done"], job["progress"]["total"]) == (0, 4)
    assert next(step["name"] for step in job["progress"]["steps"]) == "preprocess"
    assert job["created_at"].endswith("Z")
    assert datetime.fromisoformat(job["created_at"]).microsecond % 1000 == 0
    assert set(job["links"]) == {"self", "cancel"}


def test_an_unchanged_job_is_not_sent_again(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    tag = acme.get(f"jobs/{job_id}")["ETag"]
    for header in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = acme.get(f"jobs/{job_id}", If_None_Match=header)
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    assert acme.get(f"jobs/{job_id}", If_None_Match='"other"').status_code == 200
    acme.post(f"jobs/{job_id}/cancel")
    changed = acme.get(f"jobs/{job_id}", If_None_Match=tag)
    assert changed.status_code == 200
    assert changed["ETag"] != tag


def test_a_failed_job_is_retried_in_a_new_round_and_only_once(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    fail(job_id)
    assert acme.job(job_id)["error"] == {"code": "not_found", "message": "There is no page."}
    answer = acme.post(f"jobs/{job_id}/retry")
    assert answer.status_code == 202
    assert (answer.json()["status"], answer.json()["round"]) == ("initial", 2)
    again = acme.post(f"jobs/{job_id}/retry")
    assert again.status_code == 409
    assert again.json()["type"].endswith("/problems/round-in-progress")
    # The old round's instance still converges: the new one is on its way.
    assert acme.job(job_id)["waiting"]["reason"] == "dispatch"
    assert acme.job(job_id)["progress"] is None


def test_a_canceled_job_stays_canceled_however_often_it_is_asked(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    answers = [acme.post(f"jobs/{job_id}/cancel", {}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert answers[0].json() == answers[2].json()
    assert answers[0].json()["status"] == "canceled"
    refused = acme.post(f"jobs/{job_id}/retry")
    assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (
        409,
        "not-retryable",
    )


def test_a_finished_job_cannot_be_canceled(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    fail(job_id)
    answer = acme.post(f"jobs/{job_id}/cancel")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/problems/already-terminal")


def test_a_list_shows_each_job_once_while_new_ones_arrive(acme: Caller) -> None:
    moment = datetime.fromisoformat("2026-01-02T03:04:05+00:00")
    ids = [acme.submit()["id"] for _ in range(7)]
    ContentJob.objects.update(created_at=moment)
    seen: list[str] = []
    address = "jobs?limit=3"
    while address:
        answer = acme.get(address)
        page: dict[str, Any] = answer.json()
        seen += [job["id"] for job in page["results"]]
        acme.submit()
        address = page["next"] or ""
        assert (f'<{address}>; rel="next"' == answer.get("Link")) is bool(address)
    assert sorted(seen) == sorted(set(seen))
    assert set(ids) <= set(seen)


def test_a_list_is_filtered_by_status(acme: Caller) -> None:
    kept, canceled = acme.submit()["id"], acme.submit()["id"]
    acme.post(f"jobs/{canceled}/cancel")
    found = acme.get("jobs?status=canceled").json()["results"]
    assert [job["id"] for job in found] == [canceled]
    assert [job["id"] for job in acme.get("jobs?status=initial").json()["results"]] == [kept]


@pytest.mark.parametrize(
    "query",
    ["status=odd", "limit=0", "limit=101", "limit=-1", "limit=x", "limit=%D9%A1", "page=2"],
)
def test_a_filter_that_means_nothing_is_refused(acme: Caller, query: str) -> None:
    answer = acme.get(f"jobs?{query}")
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "bad-filter")


@pytest.mark.parametrize(
    "cursor", ["", "x", "%00", "e30", "W10", "WzEsMl0", "é", "WyIyMDI2LTAxLTAxIiwieCJd", "A" * 400]
)
def test_a_cursor_that_is_not_ours_is_refused(acme: Caller, cursor: str) -> None:
    answer = acme.get(f"jobs?cursor={cursor}")
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "bad-cursor")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"kind": "video"}, "/kind"),
        ({"kind": 1}, "/kind"),
        ({"source_url": ""}, "/source_url"),
        ({"source_url": "ftp://example.org/"}, "/source_url"),
        ({"source_url": "http://"}, "/source_url"),
        ({"source_url": 5}, "/source_url"),
        ({"source_url": "https://example.org/" + "a" * 2048}, "/source_url"),
        ({"source_url": "https://example.org/\ud800"}, "/source_url"),
        ({"source_url": "https://example.org/\x00"}, "/source_url"),
        ({"options": []}, "/options"),
        ({"options": {"max_sentences": 0}}, "/options/max_sentences"),
        ({"options": {"max_sentences": "5"}}, "/options/max_sentences"),
        ({"options": {"max_sentences": 5.0}}, "/options/max_sentences"),
        ({"options": {"max_sentences": True}}, "/options/max_sentences"),
        ({"options": {"max_sentence": 5}}, "/options/max_sentence"),
        ({"options": {"language": "not a tag"}}, "/options/language"),
        ({"metadata": []}, "/metadata"),
        ({"metadata": None}, "/metadata"),
        ({"priority": "urgent"}, "/priority"),
        ({"tenant": "globex"}, "/tenant"),
        ({"a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_a_wrong_field_is_named(acme: Caller, fields: dict[str, Any], pointer: str) -> None:
    answer = acme.post("jobs", {**ARTICLE, **fields})
    assert answer.status_code == 422, answer.content
    problem = answer.json()
    assert problem["type"].endswith("/problems/validation")
    assert pointer in [place["pointer"] for place in problem["errors"]]
    assert ContentJob.objects.count() == 0


@pytest.mark.parametrize("verb", ["retry", "cancel"])
def test_a_command_takes_no_fields(acme: Caller, verb: str) -> None:
    job_id = acme.submit()["id"]
    answer = acme.post(f"jobs/{job_id}/{verb}", {"force": True})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/force"


def test_a_job_that_is_over_is_done_anew_once(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    assert acme.post(f"jobs/{job_id}/regenerate").json()["type"].endswith("round-in-progress")
    fail(job_id)
    assert set(acme.job(job_id)["links"]) == {"self", "retry", "regenerate"}
    before = acme.job(job_id)["workflow_id"]
    answer = acme.post(f"jobs/{job_id}/regenerate")
    assert answer.status_code == 202, answer.content
    assert (answer.json()["status"], answer.json()["round"]) == ("initial", 2)
    job = acme.job(job_id)
    assert (job["error"], job["result"]) == (None, None)
    assert job["workflow_id"] != before
    assert acme.post(f"jobs/{job_id}/regenerate").status_code == 409


def test_a_deleted_job_is_gone(acme: Caller) -> None:
    job_id, kept = acme.submit()["id"], acme.submit()["id"]
    answer = acme.call("DELETE", f"jobs/{job_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    for call in (
        acme.get(f"jobs/{job_id}"),
        acme.call("DELETE", f"jobs/{job_id}"),
        acme.post(f"jobs/{job_id}/cancel"),
    ):
        assert slug_of(call) == "not-found"
    assert [job["id"] for job in acme.get("jobs").json()["results"]] == [kept]


def test_a_refused_round_is_told_with_what_can_be_done(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_contentjob SET dispatch_status = 'refused', dispatch_next_at = NULL"
            " WHERE id = %s",
            [job_id],
        )
    job = acme.job(job_id)
    assert job["waiting"]["reason"] == "refused"
    assert set(job["links"]) == {"self", "cancel", "regenerate"}
    assert slug_of(acme.post(f"jobs/{job_id}/retry")) == "not-retryable"
    assert acme.post(f"jobs/{job_id}/regenerate").status_code == 202


def test_a_quota_that_is_used_up_refuses_further_work_and_nothing_else(acme: Caller) -> None:
    call_command("quota", "set", "acme", "--limit", "1")
    job_id = acme.submit()["id"]
    refused = acme.post("jobs", ARTICLE, Idempotency_Key="a-key-of-sixteen")
    assert slug_of(refused) == "quota-exceeded"
    assert (refused.json()["limit"], refused.json()["used"]) == (1, 1)
    assert int(refused["Retry-After"]) > 0
    assert ContentJob.objects.count() == 1
    assert acme.post(f"jobs/{job_id}/cancel").status_code == 202
    again = acme.post("jobs", ARTICLE, Idempotency_Key="a-key-of-sixteen")
    assert again.status_code == 202


def test_a_notification_is_asked_for_by_an_option(acme: Caller) -> None:
    options = {"notify_url": "https://example.org/hook"}
    assert acme.job(acme.submit(options=options)["id"])["options"]["notify_url"]
    answer = acme.post("jobs", {**ARTICLE, "options": {"notify_url": "ftp://example.org/"}})
    assert answer.json()["errors"][0]["pointer"] == "/options/notify_url"
