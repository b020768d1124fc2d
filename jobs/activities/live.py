"""The first step of `content.live`, and the steps of `live.watch`.

```
organiser ends the event ─▶ live.watch: observe ─▶ publish ─▶ live.fanout: one ring a subscriber
                                                               └▶ content.live: preprocess goes on
```

Guarantees: each looks at the event before it waits and again whenever it is woken, by a signal or
by its poll; a signal's arrival alone means nothing. Leaves to others: ringing (`fanout`), the
event's own moves (`jobs.services.live`).
"""

from typing import Any

from jobs.activities import resting
from jobs.activities.requests import request_of
from jobs.activities.transcribing import Outcome, recording_of, transcribe
from jobs.models import LiveEvent, LiveStatus
from jobs.plans import FANOUT, LiveInput, WatchInput
from jobs.ports import FetchFailedForNow
from jobs.runtime import get_kernel
from jobs.services import live, rounds
from kernel import (
    ActivityContext,
    FinalizerContext,
    NonRetryable,
    Priority,
    Sleep,
    WaitForSignal,
    WorkflowCanceled,
)

#: Seconds after which a waiting job, or the watch, looks by itself.
READY_POLL_SECONDS = 300.0
WATCH_POLL_SECONDS = 60.0


def preprocess(ctx: ActivityContext) -> dict[str, Any] | Sleep | WaitForSignal:
    """Wait until the event has its recording, then fetch it.

    The wait's generation is the round: what rings for an earlier round wakes nobody.

    Raises:
        NonRetryable: the event was canceled or is gone.
    """
    request = request_of(ctx, LiveInput)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    event = over_or_wait(ctx, request.tenant, request.live_event)
    if isinstance(event, WaitForSignal):
        return event
    try:
        recording = recording_of(ctx, request, event.recording_url)
    except FetchFailedForNow as failure:
        return resting.site_rests(ctx, failure)
    return {"event": event.pk, "bytes": recording.details["byte_count"]}


def transcribe_audio(ctx: ActivityContext) -> Outcome:
    """Turn the event's recording into text; waits without holding anything."""
    request = request_of(ctx, LiveInput)
    event = over_or_wait(ctx, request.tenant, request.live_event)
    if isinstance(event, WaitForSignal):
        return event
    return transcribe(ctx, request, event.recording_url)


def over_or_wait(ctx: ActivityContext, tenant: str, event_id: str) -> LiveEvent | WaitForSignal:
    """Return an event that has its recording, or the wait for it.

    Raises:
        NonRetryable: the event was canceled or is gone.
    """
    event = live.find_event(tenant, event_id)
    if event is None:
        raise NonRetryable("The live event is gone.", code="live_gone")
    if event.status == LiveStatus.CANCELED:
        raise NonRetryable("The live event was called off.", code="live_canceled")
    if event.status == LiveStatus.ENDED:
        return event
    return WaitForSignal(
        live.READY,
        wait_key=event.pk,
        generation=ctx.fencing_token,
        poll_after=READY_POLL_SECONDS,
        checkpoint=ctx.checkpoint,
    )


def observe(ctx: ActivityContext) -> dict[str, Any] | WaitForSignal:
    """Wait until the event is over; the only one who looks at it regularly.

    Raises:
        WorkflowCanceled: the event is gone.
    """
    request = _watched(ctx)
    event = live.find_event(request.tenant, request.event_id)
    if event is None:
        raise WorkflowCanceled("the live event is gone")
    if event.status in {LiveStatus.ENDED, LiveStatus.CANCELED}:
        return {"status": str(event.status)}
    return WaitForSignal(
        live.CHANGED,
        wait_key=event.pk,
        generation=ctx.fencing_token,
        poll_after=WATCH_POLL_SECONDS,
    )


def publish(ctx: ActivityContext) -> dict[str, Any]:
    """Start the fan-out, in a workflow of its own. On repeat: the same one.

    Its name comes from the event, so whoever publishes, and how often, there is one.
    """
    request = _watched(ctx)
    started = get_kernel().start_or_resume(
        FANOUT,
        biz_key=f"{FANOUT.type}:{request.tenant}:{request.event_id}",
        input=request,
        priority=Priority.DISTRIBUTION,
    )
    return {"workflow_id": started.workflow_id}


def watched(ctx: FinalizerContext) -> None:
    """Success finalizer of the watch. On repeat: nothing."""
    _finish(ctx, failed=False)


def watch_failed(ctx: FinalizerContext) -> None:
    """Failure finalizer of the watch; waiting jobs still look by themselves. On repeat: nothing."""
    _finish(ctx, failed=True)


def _watched(ctx: ActivityContext) -> WatchInput:
    request = ctx.input
    assert isinstance(request, WatchInput), "the plan names its input model"
    return request


def _finish(ctx: FinalizerContext, *, failed: bool) -> None:
    request = ctx.input
    assert isinstance(request, WatchInput), "the plan names its input model"
    live.finish_watch(request.event_id, ctx.fencing_token, failed=failed)
