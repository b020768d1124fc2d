"""Summarise a text and keep the summary: what every content workflow's `compose` does.

Guarantees: a summary that was kept in this round is returned without asking the composer again.
Leaves to others: where the text comes from (`article`, `audio`, `digest`).
"""

from collections.abc import Callable
from typing import Any

from jobs.activities.requests import ports_of
from jobs.models import ArtifactKind, ContentArtifact
from jobs.plans import ContentInput
from jobs.ports import Composition, PortCancelled
from jobs.services import rounds
from kernel import ActivityContext


def summarised(
    ctx: ActivityContext,
    text: str,
    *,
    title: str,
    max_sentences: int,
    key: str | None = None,
) -> Composition:
    """Ask the composer, streaming to the client; `key` tells several questions of a step apart."""
    try:
        return ports_of(ctx).composer.compose(
            text,
            title=title,
            max_sentences=max_sentences,
            deadline=ctx.deadline,
            cancelled=ctx.cancelled,
            on_text=ctx.stream.text,
            idempotency_key=f"{ctx.idempotency_key}:{key}" if key else ctx.idempotency_key,
        )
    except PortCancelled:
        ctx.raise_if_cancelled()
        raise


def kept_composition(
    ctx: ActivityContext, request: ContentInput, compose: Callable[[], tuple[str, dict[str, Any]]]
) -> ContentArtifact:
    """Return this round's composition; `compose` gives its text and details if there is none.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone.
    """
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    kept = rounds.find_artifact(request.job_id, ctx.fencing_token, kind=ArtifactKind.COMPOSITION)
    if kept is not None:
        return kept
    text, details = compose()
    return rounds.keep_artifact(
        request.job_id,
        ctx.fencing_token,
        kind=ArtifactKind.COMPOSITION,
        text=text,
        details=details,
    )


def details_of(composition: Composition, **more: Any) -> dict[str, Any]:
    """Give what is kept of a composition beside its text."""
    return {
        "sentences": [rounds.storable(sentence) for sentence in composition.sentences],
        "source_words": composition.source_words,
        "model": composition.model,
        **more,
    }
