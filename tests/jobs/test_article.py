"""`content.article` from request to result, on real pages, databases and rounds."""

from dataclasses import dataclass
from typing import Any

import pytest

from jobs.models import ArtifactKind, ContentArtifact, ContentJob
from jobs.services import content, rounds
from kernel import Kernel
from tests.dispatch.rows import force, state, stored
from tests.jobs.site import ARTICLE_HTML, Site

pytestmark = pytest.mark.django_db(transaction=True)


def submit(site: Site, path: str = "/tides", **fields: Any) -> ContentJob:
    return content.submit_job(tenant="acme", kind="article", source_url=site.url + path, **fields)


def run(kernel: Kernel) -> None:
    kernel.drain(queues=["content"])


def instance_of(kernel: Kernel, job: ContentJob) -> Any:
    return kernel.find(biz_key=job.dispatch_key())


def test_request_becomes_a_stored_summary(serving: Kernel, site: Site) -> None:
    job = submit(site, options={"max_sentences": 2}, metadata={"$ref": {"": [1, 2.5, None]}})
    run(serving)
    row = stored(job)
    assert (row.status, row.error_code) == ("ready", "")
    assert row.title == "How tides turn a mill"
    assert len(row.result["sentences"]) == 2
    assert all(sentence in row.result["summary"] for sentence in row.result["sentences"])
    assert "Home" not in row.result["summary"]
    assert row.result["metadata"] == {"$ref": {"": [1, 2.5, None]}}
    assert row.result["final_url"] == f"{site.url}/tides"
    assert row.finished_at is not None
    instance = instance_of(serving, job)
    assert instance.status == "completed"
    assert {step.status for step in instance.steps.values()} == {"completed"}


def test_page_that_is_not_there_fails_the_job_with_a_reason(serving: Kernel, site: Site) -> None:
    job = submit(site, "/missing")
    run(serving)
    row = stored(job)
    assert (row.status, row.error_code) == ("failed", "not_found")
    assert row.error_message
    assert row.result is None
    assert instance_of(serving, job).status == "failed"
    assert site.asked == ["/missing"]


def test_retry_after_failure_repeats_only_what_failed(serving: Kernel, site: Site) -> None:
    job = submit(site, "/later")
    run(serving)
    assert state(job) == ("failed", "dispatched", 1)
    site.pages["/later"] = (200, ARTICLE_HTML)

    content.retry_job("acme", job.pk)
    run(serving)

    assert state(job) == ("ready", "dispatched", 2)
    steps = instance_of(serving, job).steps
    assert (steps["preprocess"].attempt, steps["fetch_page"].attempt) == (1, 1)
    assert instance_of(serving, job).fencing_token == 2
    assert site.asked == ["/later", "/later"]
    assert {a.round for a in ContentArtifact.objects.filter(job=job)} == {2}


def test_canceled_job_ends_its_workflow_before_any_step(serving: Kernel, site: Site) -> None:
    job = submit(site)
    content.cancel_job("acme", job.pk)
    run(serving)
    assert state(job) == ("canceled", "withdrawn", 1)
    assert instance_of(serving, job).status == "canceled"
    assert site.asked == []


def test_workflow_that_finds_its_job_canceled_ends_itself(serving: Kernel, site: Site) -> None:
    job = submit(site)
    force(job, status="canceled")
    run(serving)
    assert instance_of(serving, job).status == "canceled"
    assert site.asked == []


def test_workflow_that_finds_its_job_gone_ends_itself(serving: Kernel, site: Site) -> None:
    job = submit(site)
    ContentJob._base_manager.filter(pk=job.pk)._raw_delete("default")
    run(serving)
    assert instance_of(serving, job).status == "canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizerCall:
    """What a finalizer looks at, for calls out of their workflow's turn."""

    input: dict[str, Any]
    outputs: dict[str, Any]
    error: dict[str, Any] | None
    fencing_token: int


def test_finalizers_of_a_passed_round_count_it_as_done(serving: Kernel, site: Site) -> None:
    from jobs.activities import article

    job = submit(site)
    run(serving)
    output = instance_of(serving, job).output["finalize"]
    force(job, status="initial", result=None, dispatch_fencing_token=2)
    late: Any = FinalizerCall(
        input=job.dispatch_input["input"],
        outputs={"finalize": output},
        error={"step": "compose", "code": "x", "message": "y"},
        fencing_token=1,
    )
    article.settle(late)
    article.give_up(late)
    row = stored(job)
    assert (row.status, row.result, row.error_code) == ("initial", None, "")


def test_failure_finalizer_that_finds_its_round_ready_leaves_it_so(
    serving: Kernel, site: Site
) -> None:
    job = submit(site)
    run(serving)
    assert not rounds.finish_failed(job.pk, 1, code="late", message="late").done
    assert stored(job).status == "ready"


def test_artifact_of_a_round_is_kept_once_and_the_first_one_stays() -> None:
    job = content.submit_job(tenant="acme", kind="article", source_url="http://example.org/")

    def keep(text: str) -> ContentArtifact:
        return rounds.keep_artifact(job.pk, 1, kind=ArtifactKind.PAGE, text=text, details={})

    first, second = keep("one\x00"), keep("two")
    assert first.pk == second.pk
    assert stored_text(first) == "one\ufffd"


def test_late_worker_of_an_old_round_stores_no_artifact() -> None:
    from kernel import WorkflowCanceled

    job = content.submit_job(tenant="acme", kind="article", source_url="http://example.org/")
    force(job, dispatch_fencing_token=2)
    with pytest.raises(WorkflowCanceled):
        rounds.keep_artifact(job.pk, 1, kind=ArtifactKind.PAGE, text="late", details={})
    assert not ContentArtifact.objects.filter(job=job).exists()


def test_summary_kept_in_this_round_is_not_composed_again(serving: Kernel, site: Site) -> None:
    job = submit(site)
    rounds.keep_artifact(
        job.pk,
        1,
        kind=ArtifactKind.COMPOSITION,
        text="Kept before the crash.",
        details={
            "title": "Kept",
            "sentences": ["Kept before the crash."],
            "source_words": 4,
            "model": "earlier",
            "final_url": "",
            "language": None,
        },
    )
    run(serving)
    assert stored(job).result["summary"] == "Kept before the crash."


def stored_text(artifact: ContentArtifact) -> str:
    return ContentArtifact.objects.get(pk=artifact.pk).text
