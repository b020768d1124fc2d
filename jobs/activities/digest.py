"""The steps of `content.digest` that are its own: two candidates, and the user's choice.

Guarantees: the candidates the user saw are the ones that are published; who waits for a choice
holds nothing, and looks by itself once a minute. Leaves to others: fetching and recognising
(`article`, `audio`), storing the choice (`jobs.services.choices`).
"""

from typing import Any

from jobs.activities import endings, resting
from jobs.activities.composing import details_of, kept_composition, summarised
from jobs.activities.live import over_or_wait
from jobs.activities.requests import artifact_of, request_of
from jobs.activities.transcribing import Outcome, transcribe
from jobs.plans import DigestInput
from jobs.ports import ComposeFailedForNow
from jobs.resources import CONTENT_GENERATION
from jobs.services import choices, rounds
from kernel import ActivityContext, Sleep, WaitForSignal, Yield

#: Seconds after which the step looks whether a choice was made, though nobody rang.
CHOICE_POLL_SECONDS = 60.0
#: The options offered, and what part of the wanted sentences each has.
BRIEF, FULL = "brief", "full"


def transcribe_audio(ctx: ActivityContext) -> Outcome:
    """Turn the recording into text while the page is fetched; waits without holding anything.

    The recording of a live event is waited for first.
    """
    request = request_of(ctx, DigestInput)
    if request.live_event is None:
        assert request.audio_url is not None, "one of the two is checked at entry"
        return transcribe(ctx, request, request.audio_url)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    event = over_or_wait(ctx, request.tenant, request.live_event)
    if isinstance(event, WaitForSignal):
        return event
    return transcribe(ctx, request, event.recording_url)


def compose(ctx: ActivityContext) -> dict[str, Any] | Sleep | Yield:
    """Summarise page and recording together, twice: briefly, and in full.

    On repeat in a round: what was kept is returned without asking the composer again.
    """
    request = request_of(ctx, DigestInput)

    def make() -> tuple[str, dict[str, Any]]:
        page = artifact_of(request.job_id, ctx.output("fetch_page"), what="page")
        transcript = artifact_of(request.job_id, ctx.output("transcribe_audio"), what="transcript")
        text, title = f"{page.text}\n\n{transcript.text}", page.details["title"]
        count = request.max_sentences
        full = summarised(ctx, text, title=title, max_sentences=count, key=FULL)
        brief = summarised(ctx, text, title=title, max_sentences=max(1, count // 2), key=BRIEF)
        made = ((BRIEF, brief), (FULL, full))
        return full.summary, details_of(
            full,
            title=rounds.storable(full.title or title),
            final_url=page.details["final_url"],
            language=page.details["language"],
            transcript=transcript.text,
            candidates=[
                {
                    "option": option,
                    "summary": rounds.storable(candidate.summary),
                    "sentences": [rounds.storable(text) for text in candidate.sentences],
                }
                for option, candidate in made
            ],
        )

    try:
        kept = kept_composition(ctx, request, make)
    except ComposeFailedForNow as failure:
        return resting.provider_rests(ctx, CONTENT_GENERATION, failure)
    return {"artifact": kept.pk, "candidates": len(kept.details["candidates"])}


def choose(ctx: ActivityContext) -> dict[str, Any] | WaitForSignal:
    """Offer the candidates, and wait until the user has chosen one."""
    request = request_of(ctx, DigestInput)
    composition = artifact_of(request.job_id, ctx.output("compose"), what="composition")
    choice = choices.open_choice(
        request.job_id, ctx.fencing_token, composition.details["candidates"]
    )
    if choice.option is not None:
        return {"option": choice.option}
    return WaitForSignal(
        choices.SIGNAL,
        wait_key=request.job_id,
        generation=ctx.fencing_token,
        poll_after=CHOICE_POLL_SECONDS,
    )


def finalize(ctx: ActivityContext) -> dict[str, Any]:
    """Check that there is a result, and name the candidate that was chosen."""
    return {**endings.finalize(ctx), "option": ctx.output("choose")["option"]}
