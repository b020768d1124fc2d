"""Live events as their organisers see them, and the jobs that wait for them.

```
schedule ─▶ scheduled ─start─▶ live ─end(recording)─▶ ended
                └──────────────┴────cancel──────────▶ canceled
```

Guarantees: each move is one conditional update; the fact is stored before anybody is woken, and a
repeat of the call rings again. A ring that is lost is made up for by the watch's poll fallback.
Another tenant's event does not exist. Leaves to others: watching and fanning out
(`jobs.activities.live`, `jobs.activities.fanout`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import router, transaction

from jobs.dispatch import FencedWrite, fenced_update, install
from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, LiveEvent, LiveStatus, LiveSubscription, WatchStatus
from jobs.models.content import OPEN_STATUSES
from jobs.models.live import TITLE_CHARACTERS
from jobs.runtime import get_kernel
from jobs.services.errors import EventClosed, InvalidRequest, JobNotFound, Problem
from jobs.services.ringing import ring
from jobs.services.texts import storable
from jobs.services.web_address import is_web_address
from kernel import Priority, workflow_id_of

#: Signals: something about an event changed; an event is over for those who wait for it.
CHANGED = "live_event_changed"
READY = "live_ready"
#: Most rows one page of a list may have.
LIST_LIMIT_MAX = 200
_OVER = (LiveStatus.ENDED.value, LiveStatus.CANCELED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A waiting job as the fan-out needs it."""

    #: Position in the fan-out's order.
    position: int
    job_id: str
    round: int
    workflow_id: str


def schedule(tenant: str, *, title: str) -> LiveEvent:
    """Announce an event, and have it watched. On repeat: another event.

    Raises:
        InvalidRequest: the title is empty or too long.
    """
    if not title.strip() or len(title) > TITLE_CHARACTERS:
        raise InvalidRequest(
            [Problem(pointer="/title", detail=f"Give 1 to {TITLE_CHARACTERS} characters.")]
        )
    event = LiveEvent(tenant=tenant, title=storable(title))
    with transaction.atomic():
        install(event, priority=Priority.DISTRIBUTION)
    return event


def start(tenant: str, event_id: str) -> LiveEvent:
    """Note that the event has begun. On repeat: the same answer.

    Raises:
        JobNotFound: the tenant has no such event.
        EventClosed: it is over.
    """
    return _move(tenant, event_id, (LiveStatus.SCHEDULED,), LiveStatus.LIVE)


def end(tenant: str, event_id: str, *, recording_url: str) -> LiveEvent:
    """Note that the event is over and where its recording is, and wake whoever waits.

    Raises:
        JobNotFound: the tenant has no such event.
        InvalidRequest: the recording's address cannot be one.
        EventClosed: it was canceled, or has ended with another recording.
    On repeat with the same recording: the same answer, and another ring.
    """
    if not is_web_address(recording_url):
        raise InvalidRequest(
            [Problem(pointer="/recording_url", detail="Give an http or https URL with a host.")]
        )
    return _move(
        tenant,
        event_id,
        (LiveStatus.SCHEDULED, LiveStatus.LIVE),
        LiveStatus.ENDED,
        recording_url=recording_url,
    )


def cancel(tenant: str, event_id: str) -> LiveEvent:
    """Call the event off; jobs that wait for it fail with a reason. On repeat: the same answer.

    Raises:
        JobNotFound: the tenant has no such event.
        EventClosed: it has ended.
    """
    return _move(tenant, event_id, (LiveStatus.SCHEDULED, LiveStatus.LIVE), LiveStatus.CANCELED)


def get_event(tenant: str, event_id: str) -> LiveEvent:
    """Read one event. Raises: JobNotFound, also for an id that could be none."""
    event = find_event(tenant, event_id)
    if event is None:
        raise JobNotFound(event_id)
    return event


def find_event(tenant: str, event_id: str) -> LiveEvent | None:
    """Read one event of a tenant; None when there is none."""
    if "\x00" in event_id or not event_id.isascii():
        return None
    return LiveEvent.objects.filter(tenant=tenant, pk=event_id).first()


def list_events(
    tenant: str, *, after: tuple[datetime, str] | None = None, limit: int = 50
) -> list[LiveEvent]:
    """List a tenant's events, newest first; `after` is (created_at, id) of the last one seen."""
    events = LiveEvent.objects.filter(tenant=tenant)
    if after is not None:
        created_at, event_id = after
        events = events.filter(created_at__lte=created_at).exclude(
            created_at=created_at, id__gte=event_id
        )
    return list(events.order_by("-created_at", "-id")[: max(1, min(limit, LIST_LIMIT_MAX))])


def subscribe(job: ContentJob, event_id: str) -> None:
    """Have a new job woken when its event is over; called in the transaction that inserts it."""
    LiveSubscription.objects.create(job=job, event_id=event_id)


def subscribers_after(event_id: str, position: int, *, limit: int) -> list[Subscriber]:
    """Read the next page of jobs that may be waiting, by position.

    A job inserted behind the reader's back needs no ring: it looks at the event before it waits,
    and the event was over before the reading began.
    """
    rows = (
        LiveSubscription.objects.filter(
            event_id=event_id, id__gt=position, job__status__in=OPEN_STATUSES
        )
        .order_by("id")
        .values_list("id", "job_id", "job__dispatch_fencing_token", "job__dispatch_biz_key")
    )
    return [
        Subscriber(
            position=row_id,
            job_id=job_id,
            round=int(fencing_token or 0),
            workflow_id=workflow_id_of(biz_key or ""),
        )
        for row_id, job_id, fencing_token, biz_key in rows[:limit]
    ]


def ring_subscribers(event_id: str, subscribers: Sequence[Subscriber]) -> int:
    """Ring at a page of waiting jobs; tells how many were rung at for the first time.

    Raises:
        StoreUnavailable: no answer; repeat the page, the signals' ids stay the same.
    """
    signals = [
        {
            "workflow_id": subscriber.workflow_id,
            "signal_type": READY,
            "wait_key": event_id,
            "generation": subscriber.round,
            "signal_id": f"{event_id}:{subscriber.job_id}:{subscriber.round}",
        }
        for subscriber in subscribers
    ]
    return sum(get_kernel().deliver_signals(signals))


def finish_watch(event_id: str, fencing_token: int, *, failed: bool) -> FencedWrite:
    """Note how the watch ended. On repeat: `already`."""
    return fenced_update(
        LiveEvent,
        event_id,
        fencing_token,
        from_status=WatchStatus.WATCHING,
        watch_status=WatchStatus.FAILED if failed else WatchStatus.DONE,
        updated_at=db_now(),
    )


def _move(
    tenant: str,
    event_id: str,
    expected: tuple[LiveStatus, ...],
    wanted: LiveStatus,
    **changes: str,
) -> LiveEvent:
    get_event(tenant, event_id)
    moved = LiveEvent.objects.filter(tenant=tenant, pk=event_id, status__in=expected).update(
        status=wanted, updated_at=db_now(), **changes
    )
    event = get_event(tenant, event_id)
    same = event.status == wanted and all(
        getattr(event, name) == value for name, value in changes.items()
    )
    if not moved and not same:
        raise EventClosed(event.status)
    if event.status in _OVER:
        transaction.on_commit(
            partial(_ring, event), using=router.db_for_write(LiveEvent), robust=True
        )
    return event


def _ring(event: LiveEvent) -> None:
    """Wake the watch; a lost ring is only a later look."""
    ring(
        workflow_id=workflow_id_of(event.dispatch_biz_key or ""),
        signal_type=CHANGED,
        wait_key=event.pk,
        generation=event.dispatch_fencing_token or 0,
        signal_id=f"{event.pk}:{event.status}",
    )
