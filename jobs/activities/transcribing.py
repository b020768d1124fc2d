"""`transcribe_audio`: fetch the recording, submit it once, follow the task until there is text.

The recording is submitted with `ctx.idempotency_key`; the answer's id goes into the checkpoint, and
while an id is stored nothing is submitted again. A death between the two is covered by the key: the
provider gives the same task. Between two questions the workflow sleeps; where the provider can call
back it waits for that signal, and asks all the same when nobody rings (`poll_after`).

Guarantees: a transcript of this round is kept once. Leaves to others: what a stored task's state
decides (`followed`), retries (`jobs.workflows`).
"""

import time
from typing import Any

from django.conf import settings

from jobs.activities import resting
from jobs.activities.followed import TASK_ID_CHARACTERS, FollowedTask
from jobs.activities.requests import media_of
from jobs.models import ContentArtifact
from jobs.plans import ContentInput
from jobs.ports import (
    FailedForNow,
    FetchFailedForNow,
    PortCancelled,
    SpeechFailedForNow,
    SpeechRefused,
    SpeechState,
    SpeechTask,
)
from jobs.resources import SPEECH_RECOGNITION
from jobs.services import callbacks, recordings, rounds
from kernel import ActivityContext, NonRetryable, Sleep, WaitForSignal, Yield

Outcome = dict[str, Any] | Sleep | WaitForSignal | Yield


def transcribe(ctx: ActivityContext, request: ContentInput, url: str) -> Outcome:
    """Do one turn: submit, or look how the submitted task stands.

    Raises:
        NonRetryable: the recording cannot be had or recognised; the message says why.
        FailedForNow: worth another attempt.
        WorkflowCanceled: the round passed, or the job is over or gone.
    """
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    kept = recordings.find_transcript(request.job_id, ctx.fencing_token)
    if kept is not None:
        return _output(kept)
    try:
        if ctx.checkpoint is None or resting.has_rested(ctx.checkpoint):
            return _submit(ctx, request, url)
        return _look(ctx, request, FollowedTask.load(ctx.checkpoint))
    except PortCancelled:
        ctx.raise_if_cancelled()
        raise
    except FetchFailedForNow as failure:
        return resting.site_rests(ctx, failure)
    except SpeechFailedForNow as failure:
        return resting.provider_rests(ctx, SPEECH_RECOGNITION, failure)


def recording_of(ctx: ActivityContext, request: ContentInput, url: str) -> ContentArtifact:
    """Return this round's recording, fetching it if this is the first to ask for it.

    Raises:
        FetchRefused, FetchFailedForNow: as the port says.
    """
    kept = recordings.find_recording(request.job_id, ctx.fencing_token)
    if kept is not None:
        return kept
    try:
        recording = media_of(ctx).recordings.fetch(
            url, deadline=ctx.deadline, cancelled=ctx.cancelled
        )
    except PortCancelled:
        ctx.raise_if_cancelled()
        raise
    return recordings.keep_recording(
        request.job_id,
        ctx.fencing_token,
        content=recording.content,
        details={
            "final_url": rounds.storable(recording.final_url),
            "byte_count": len(recording.content),
            "content_type": rounds.storable(recording.content_type),
        },
    )


def _submit(ctx: ActivityContext, request: ContentInput, url: str) -> Outcome:
    ports = media_of(ctx)
    desk = ports.speech
    recording = recording_of(ctx, request, url)
    followed = FollowedTask.begin(
        provider=desk.default,
        task_id="x" * TASK_ID_CHARACTERS,
        now=_now(),
        terms=desk.terms,
        options={"language": request.language, "recording": recording.pk},
    )
    # An id that could not be stored afterwards would be lost, and the work paid for nothing.
    ctx.check(followed.dump())
    task = desk.provider(desk.default).submit(
        recordings.read_content(recording),
        language=request.language,
        idempotency_key=ctx.idempotency_key,
        callback_url=_callback_url(ctx, desk.default),
        deadline=ctx.deadline,
        cancelled=ctx.cancelled,
    )
    if len(task.task_id) > TASK_ID_CHARACTERS:
        raise SpeechRefused("The speech provider's task id is beyond all measure.", code="rejected")
    ctx.log.info("submitted to %s as %s", desk.default, task.task_id)
    followed = FollowedTask.begin(
        provider=desk.default,
        task_id=task.task_id,
        now=followed.submitted_at,
        terms=desk.terms,
        options=followed.options,
    )
    return _decide(ctx, request, followed, task)


def _look(ctx: ActivityContext, request: ContentInput, followed: FollowedTask) -> Outcome:
    followed.check_time(_now())
    provider = media_of(ctx).speech.provider(followed.provider)
    try:
        task = provider.query(followed.task_id, deadline=ctx.deadline, cancelled=ctx.cancelled)
    except FailedForNow as failure:
        ctx.log.warning("no answer about %s: %s", followed.task_id, failure)
        followed = followed.unanswered(failure.message)
        if resting.is_asked(failure):
            resting.cool_down(ctx, SPEECH_RECOGNITION, failure.retry_after or followed.delay())
        return _wait(ctx, followed, wanted=failure.retry_after)
    ctx.log.info("asked %s for %s: %s", followed.provider, followed.task_id, task.state)
    return _decide(ctx, request, followed.answered(), task)


def _decide(
    ctx: ActivityContext, request: ContentInput, followed: FollowedTask, task: SpeechTask
) -> Outcome:
    if task.state is SpeechState.SUCCEEDED:
        return _keep(ctx, request, followed, task.text)
    if task.state is SpeechState.FAILED:
        reason = task.reason or "The provider does not say why."
        raise NonRetryable(f"The recording was not recognised: {reason}", code="speech_failed")
    if task.state is SpeechState.UNKNOWN:
        raise SpeechFailedForNow(
            f"The speech provider {followed.provider} does not know the task {followed.task_id} it"
            " was given; it is submitted anew if attempts are left.",
            code="speech_task_lost",
        )
    return _wait(ctx, followed)


def _keep(
    ctx: ActivityContext, request: ContentInput, followed: FollowedTask, text: str
) -> dict[str, Any]:
    if not text.strip():
        raise NonRetryable("No speech was heard in the recording.", code="no_speech")
    recording = recordings.find_recording(request.job_id, ctx.fencing_token)
    kept = recordings.keep_transcript(
        request.job_id,
        ctx.fencing_token,
        text=text,
        details={
            "provider": followed.provider,
            "task_id": followed.task_id,
            "final_url": recording.details["final_url"] if recording else "",
            "language": followed.options["language"],
        },
    )
    return _output(kept)


def _wait(
    ctx: ActivityContext, followed: FollowedTask, *, wanted: float | None = None
) -> Sleep | WaitForSignal:
    delay, checkpoint = followed.delay(wanted=wanted), followed.dump()
    if not media_of(ctx).public_url:
        return Sleep(delay, checkpoint=checkpoint)
    return WaitForSignal(
        callbacks.SIGNAL,
        wait_key=ctx.idempotency_key,
        generation=ctx.fencing_token,
        poll_after=delay,
        checkpoint=checkpoint,
    )


def _callback_url(ctx: ActivityContext, provider: str) -> str | None:
    base = media_of(ctx).public_url
    if not base:
        return None
    return callbacks.address(
        base,
        provider=provider,
        workflow_id=ctx.workflow_id,
        wait_key=ctx.idempotency_key,
        generation=ctx.fencing_token,
    )


def _output(transcript: ContentArtifact) -> dict[str, Any]:
    return {
        "artifact": transcript.pk,
        "characters": len(transcript.text),
        "task_id": transcript.details["task_id"],
    }


def _now() -> float:
    return time.time() + settings.BATON_CLOCK_OFFSET_MS / 1000
