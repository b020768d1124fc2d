"""The steps of `content.article`.

Guarantees: outputs are references and small facts; texts are business rows. Every step enters the
round itself, because after a user's retry any of them may be the first to run. Leaves to others:
the order and the policy (`jobs.workflows.article`), the end (`jobs.activities.endings`).
"""

from typing import Any

from jobs.activities import resting
from jobs.activities.composing import details_of, kept_composition, summarised
from jobs.activities.endings import finalize, give_up, settle
from jobs.activities.requests import artifact_of, ports_of, request_of
from jobs.models import ArtifactKind
from jobs.plans import ContentInput
from jobs.ports import ComposeFailedForNow, FetchFailedForNow, PortCancelled
from jobs.resources import CONTENT_GENERATION
from jobs.services import rounds
from kernel import ActivityContext, Sleep, Yield

__all__ = ["compose", "fetch_page", "finalize", "give_up", "preprocess", "settle"]


def preprocess(ctx: ActivityContext) -> dict[str, Any]:
    """Tell the client that work has begun. On repeat: the same."""
    request = request_of(ctx, ContentInput)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    return {"round": ctx.fencing_token}


def fetch_page(ctx: ActivityContext) -> dict[str, Any] | Sleep:
    """Fetch the page and keep its text. On repeat in a round: the page kept first is used."""
    request = request_of(ctx, ContentInput)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    kept = rounds.find_artifact(request.job_id, ctx.fencing_token, kind=ArtifactKind.PAGE)
    if kept is None:
        try:
            page = ports_of(ctx).pages.fetch(
                request.source_url, deadline=ctx.deadline, cancelled=ctx.cancelled
            )
        except PortCancelled:
            ctx.raise_if_cancelled()
            raise
        except FetchFailedForNow as failure:
            return resting.site_rests(ctx, failure)
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


def compose(ctx: ActivityContext) -> dict[str, Any] | Sleep | Yield:
    """Summarise the page and keep the summary.

    On repeat in a round: a summary that was kept is returned without asking the composer again.
    """
    request = request_of(ctx, ContentInput)

    def make() -> tuple[str, dict[str, Any]]:
        page = artifact_of(request.job_id, ctx.output("fetch_page"), what="page")
        title = page.details["title"]
        made = summarised(ctx, page.text, title=title, max_sentences=request.max_sentences)
        return made.summary, details_of(
            made,
            title=rounds.storable(made.title or title),
            final_url=page.details["final_url"],
            language=page.details["language"],
        )

    try:
        kept = kept_composition(ctx, request, make)
    except ComposeFailedForNow as failure:
        return resting.provider_rests(ctx, CONTENT_GENERATION, failure)
    return {"artifact": kept.pk, "sentences": len(kept.details["sentences"])}
