"""The steps of `content.audio`; `content.live` and `content.digest` use some of them too.

Guarantees: the same as `jobs.activities.article`. Leaves to others: the order and the policy
(`jobs.workflows.audio`), following the provider's task (`transcribing`), the end (`endings`).
"""

from typing import Any

from jobs.activities import resting
from jobs.activities.composing import details_of, kept_composition, summarised
from jobs.activities.requests import artifact_of, request_of
from jobs.activities.transcribing import Outcome, recording_of, transcribe
from jobs.plans import AudioInput, ContentInput
from jobs.ports import ComposeFailedForNow, FetchFailedForNow
from jobs.resources import CONTENT_GENERATION
from jobs.services import rounds
from kernel import ActivityContext, Sleep, Yield


def preprocess(ctx: ActivityContext) -> dict[str, Any] | Sleep:
    """Fetch the recording, so that a wrong address is told at once. On repeat: the first stays."""
    request = request_of(ctx, AudioInput)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    try:
        recording = recording_of(ctx, request, request.source_url)
    except FetchFailedForNow as failure:
        return resting.site_rests(ctx, failure)
    return {"round": ctx.fencing_token, "bytes": recording.details["byte_count"]}


def transcribe_audio(ctx: ActivityContext) -> Outcome:
    """Turn the recording into text; waits without holding anything. See `transcribing`."""
    request = request_of(ctx, AudioInput)
    return transcribe(ctx, request, request.source_url)


def compose(ctx: ActivityContext) -> dict[str, Any] | Sleep | Yield:
    """Summarise the transcript and keep the summary.

    On repeat in a round: a summary that was kept is returned without asking the composer again.
    """
    request = request_of(ctx, ContentInput)

    def make() -> tuple[str, dict[str, Any]]:
        transcript = artifact_of(request.job_id, ctx.output("transcribe_audio"), what="transcript")
        made = summarised(ctx, transcript.text, title="", max_sentences=request.max_sentences)
        return made.summary, details_of(
            made,
            title=rounds.storable(made.title),
            final_url=transcript.details["final_url"],
            language=transcript.details["language"],
            transcript=transcript.text,
        )

    try:
        kept = kept_composition(ctx, request, make)
    except ComposeFailedForNow as failure:
        return resting.provider_rests(ctx, CONTENT_GENERATION, failure)
    return {"artifact": kept.pk, "sentences": len(kept.details["sentences"])}
