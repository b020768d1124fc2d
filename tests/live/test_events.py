"""A live event from its announcement to the jobs that it wakes."""

import pytest

from jobs.models import LiveSubscription
from jobs.services import content, live
from jobs.services.errors import EventClosed, InvalidRequest, JobNotFound
from kernel import Kernel
from kernel.testing import run_until_idle
from tests.live.turns import (
    DISTRIBUTION,
    MEDIA,
    RECORDING,
    announce,
    fan_out_of,
    first_step,
    instance_of,
    pass_time,
    row,
    subscribe,
)
from tests.speech.service import Recordings

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_end_of_an_event_wakes_each_job_that_waits_for_it(
    serving: Kernel, recordings: Recordings
) -> None:
    event = announce()
    jobs = [subscribe(event) for _ in range(3)]
    run_until_idle(serving, [*MEDIA, *DISTRIBUTION])
    for job in jobs:
        assert (instance_of(serving, job).status, first_step(serving, job).attempt) == (
            "waiting",
            0,
        )
    live.start("acme", event.pk)
    live.end("acme", event.pk, recording_url=recordings.url + "/sentence.wav")
    run_until_idle(serving, DISTRIBUTION)
    assert fan_out_of(serving, event).output["notify"] == {"rung": 3}
    assert row(event).watch_status == "done"
    for job in jobs:
        resume = first_step(serving, job).resume
        assert resume is not None
        assert (resume.kind, resume.signal_id) == ("signal", f"{event.pk}:{job.pk}:1")
    serving.drain(MEDIA)
    assert {first_step(serving, job).status for job in jobs} == {"completed"}
    assert recordings.asked == ["/sentence.wav"] * 3


def test_a_job_that_comes_after_the_end_does_not_wait(
    serving: Kernel, recordings: Recordings
) -> None:
    event = announce()
    live.end("acme", event.pk, recording_url=recordings.url + "/sentence.wav")
    run_until_idle(serving, DISTRIBUTION)
    job = subscribe(event)
    serving.drain(MEDIA)
    assert first_step(serving, job).status == "completed"


def test_a_ring_nobody_sent_is_made_up_for_by_looking(
    serving: Kernel, recordings: Recordings
) -> None:
    event, address = announce(), recordings.url + "/sentence.wav"
    job = subscribe(event)
    run_until_idle(serving, [*MEDIA, *DISTRIBUTION])
    # The process that stored the fact died before it rang.
    type(event).objects.filter(pk=event.pk).update(status="ended", recording_url=address)
    pass_time(serving, 61, DISTRIBUTION)
    assert fan_out_of(serving, event).status == "completed"
    assert first_step(serving, job).resume is not None


def test_a_job_looks_by_itself_when_the_whole_distribution_is_down(
    serving: Kernel, recordings: Recordings
) -> None:
    event = announce()
    job = subscribe(event)
    run_until_idle(serving, MEDIA)
    live.end("acme", event.pk, recording_url=recordings.url + "/sentence.wav")
    pass_time(serving, 301, MEDIA)
    assert first_step(serving, job).status == "completed"


def test_jobs_of_an_event_that_is_called_off_fail_with_that_reason(serving: Kernel) -> None:
    event = announce()
    job = subscribe(event)
    run_until_idle(serving, [*MEDIA, *DISTRIBUTION])
    live.cancel("acme", event.pk)
    run_until_idle(serving, DISTRIBUTION)
    run_until_idle(serving, MEDIA)
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "live_canceled")


def test_a_ring_for_an_earlier_round_wakes_nobody(serving: Kernel) -> None:
    event = announce()
    job = subscribe(event)
    run_until_idle(serving, MEDIA)
    content.cancel_job("acme", job.pk)
    content.regenerate_job("acme", job.pk)
    run_until_idle(serving, MEDIA)
    assert instance_of(serving, job).status == "waiting"
    late = live.Subscriber(
        position=1, job_id=job.pk, round=1, workflow_id=instance_of(serving, job).workflow_id
    )
    assert live.ring_subscribers(event.pk, [late]) == 1
    run_until_idle(serving, MEDIA)
    assert first_step(serving, job).status == "waiting"
    (subscriber,) = live.subscribers_after(event.pk, 0, limit=10)
    assert (subscriber.round, subscriber.workflow_id) == (2, late.workflow_id)
    assert live.ring_subscribers(event.pk, [subscriber]) == 1
    assert first_step(serving, job).resume is not None


def test_jobs_that_are_over_are_not_rung_at(serving: Kernel) -> None:
    event = announce()
    job, other = subscribe(event), subscribe(event)
    run_until_idle(serving, MEDIA)
    content.cancel_job("acme", job.pk)
    live.end("acme", event.pk, recording_url=RECORDING)
    run_until_idle(serving, DISTRIBUTION)
    assert fan_out_of(serving, event).output["notify"] == {"rung": 1}
    assert first_step(serving, other).resume is not None


def test_moves_may_be_repeated_and_never_go_back(serving: Kernel) -> None:
    event = announce()
    live.start("acme", event.pk)
    assert live.start("acme", event.pk).status == "live"
    live.end("acme", event.pk, recording_url=RECORDING)
    assert live.end("acme", event.pk, recording_url=RECORDING).status == "ended"
    for move in (live.start, live.cancel):
        with pytest.raises(EventClosed):
            move("acme", event.pk)
    with pytest.raises(EventClosed):
        live.end("acme", event.pk, recording_url="https://example.org/other.wav")
    assert row(event).recording_url == RECORDING


def test_repeated_ends_fan_out_once(serving: Kernel) -> None:
    event = announce()
    job = subscribe(event)
    run_until_idle(serving, [*MEDIA, *DISTRIBUTION])
    for _ in range(5):
        live.end("acme", event.pk, recording_url=RECORDING)
    run_until_idle(serving, DISTRIBUTION)
    assert fan_out_of(serving, event).output["notify"] == {"rung": 1}
    assert len(first_step(serving, job).woken_by) == 1


def test_events_of_other_tenants_do_not_exist(serving: Kernel) -> None:
    event = announce()
    for call in (live.get_event, live.start, live.cancel):
        with pytest.raises(JobNotFound):
            call("globex", event.pk)
    with pytest.raises(InvalidRequest):
        content.submit_job(
            tenant="globex", kind="live", source_url="", options={"live_event": event.pk}
        )
    assert not LiveSubscription.objects.exists()


@pytest.mark.parametrize("title", ["", "   ", "x" * 301])
def test_an_event_needs_a_title(serving: Kernel, title: str) -> None:
    with pytest.raises(InvalidRequest):
        live.schedule("acme", title=title)


@pytest.mark.parametrize("url", ["", "talk.wav", "ftp://example.org/x", "https:///x", "x" * 3000])
def test_a_recording_needs_an_address(serving: Kernel, url: str) -> None:
    event = announce()
    with pytest.raises(InvalidRequest):
        live.end("acme", event.pk, recording_url=url)
    assert row(event).status == "scheduled"
