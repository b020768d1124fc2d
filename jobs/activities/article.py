"""The steps of `content.article`, and its two ends.

Guarantees: outputs are references and small facts; texts are business rows. Every step enters the
round itself, because after a user's retry any of them may be the first to run. Leaves to others:
the order and the policy (`jobs.workflows.article`).
"""

from typing import Any

from jobs.activities.outside import Ports
from jobs.models import ArtifactKind, ContentArtifact
from jobs.plans import ArticleInput
from jobs.ports import PortCancelled
from jobs.services import rounds
from kernel import ActivityContext, FinalizerContext, NonRetryable


def preprocess(ctx: ActivityContext) -> dict[str, Any]:
    """Tell the client that work has begun. On repeat: the same."""
    request = _request(ctx)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    return {"round": ctx.fencing_token}


def fetch_page(ctx: ActivityContext) -> dict[str, Any]:
    """Fetch the page and keep its text. On repeat in a round: the page kept first is used."""
    request = _request(ctx)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    kept = rounds.find_artifact(request.job_id, ctx.fencing_token, kind=ArtifactKind.PAGE)
    if kept is None:
        try:
            page = _ports(ctx).pages.fetch(
                request.source_url, deadline=ctx.deadline, cancelled=ctx.cancelled
            )
        except PortCancelled:
            ctx.raise_if_cancelled()
            raise
        kept = rounds.keep_artifact(
            request.job_id,
            ctx.fencing_token,
            kind=ArtifactKind.PAGE,
            text=page.text,
            details={
                "final_url": rounds.storable(page.final_url),
                "title": rounds.storable(page.title),
                "language": request.language or page.language,
                "byte_count": page.byte_count,
                "charset": page.charset,
            },
        )
    return {"artifact": kept.pk, "characters": len(kept.text)}


def compose(ctx: ActivityContext) -> dict[str, Any]:
    """Summarise the page and keep the summary.

    On repeat in a round: a summary that was kept is returned without asking the composer again.
    """
    request = _request(ctx)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    kept = rounds.find_artifact(request.job_id, ctx.fencing_token, kind=ArtifactKind.COMPOSITION)
    if kept is None:
        page = _artifact(request.job_id, ctx.output("fetch_page"), what="page")
        try:
            composition = _ports(ctx).composer.compose(
                page.text,
                title=page.details["title"],
                max_sentences=request.max_sentences,
                deadline=ctx.deadline,
                cancelled=ctx.cancelled,
                on_text=ctx.stream.text,
                idempotency_key=ctx.idempotency_key,
            )
        except PortCancelled:
            ctx.raise_if_cancelled()
            raise
        kept = rounds.keep_artifact(
            request.job_id,
            ctx.fencing_token,
            kind=ArtifactKind.COMPOSITION,
            text=composition.summary,
            details={
                "title": rounds.storable(composition.title or page.details["title"]),
                "sentences": [rounds.storable(sentence) for sentence in composition.sentences],
                "source_words": composition.source_words,
                "model": composition.model,
                "final_url": page.details["final_url"],
                "language": page.details["language"],
            },
        )
    return {"artifact": kept.pk, "sentences": len(kept.details["sentences"])}


def finalize(ctx: ActivityContext) -> dict[str, Any]:
    """Check that there is a result to give, and hand on the client's own object.

    Raises:
        NonRetryable: the summary is empty or gone.
    """
    request = _request(ctx)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    composition = _artifact(request.job_id, ctx.output("compose"), what="composition")
    if not composition.text.strip():
        raise NonRetryable("the summary is empty", code="empty_result")
    return {"artifact": composition.pk, "metadata": request.metadata}


def settle(ctx: FinalizerContext) -> None:
    """Success finalizer: publish the result. On repeat, and when the round is over: nothing."""
    request = ArticleInput.model_validate(ctx.input)
    output = ctx.outputs["finalize"]
    composition = rounds.get_artifact(request.job_id, output["artifact"])
    if composition is None:
        # Artifacts go with their job only, so nobody is left to be told.
        ctx.log.warning("job %s is gone; its result is dropped", request.job_id)
        return
    details = composition.details
    rounds.finish_ready(
        request.job_id,
        ctx.fencing_token,
        title=details["title"],
        result={
            "summary": composition.text,
            "sentences": details["sentences"],
            "source_words": details["source_words"],
            "model": details["model"],
            "final_url": details["final_url"],
            "language": details["language"],
            "metadata": output["metadata"],
        },
    )


def give_up(ctx: FinalizerContext) -> None:
    """Failure finalizer: tell the client why. On repeat, and when the round is over: nothing."""
    request = ArticleInput.model_validate(ctx.input)
    error = ctx.error or {}
    rounds.finish_failed(
        request.job_id,
        ctx.fencing_token,
        code=str(error.get("code") or "failed"),
        message=str(error.get("message") or "The workflow failed."),
    )


def _request(ctx: ActivityContext) -> ArticleInput:
    request = ctx.input
    assert isinstance(request, ArticleInput), "the plan names its input model"
    return request


def _ports(ctx: ActivityContext) -> Ports:
    ports = ctx.ports
    assert isinstance(ports, Ports), "the definition names its ports"
    return ports


def _artifact(job_id: str, output: dict[str, Any], *, what: str) -> ContentArtifact:
    artifact = rounds.get_artifact(job_id, output["artifact"])
    if artifact is None:
        raise NonRetryable(f"the stored {what} of {job_id} is gone", code="artifact_missing")
    return artifact
