"""`content.audio` from request to result, and what it makes of a provider's misbehaviour."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.models import ArtifactKind, ContentArtifact, ContentJob
from jobs.ports import SpeechTerms
from jobs.services import content
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import stored
from tests.speech.conftest import media_ports, serve_media
from tests.speech.service import Recordings, SpeechProcess, one_sentence, wav
from tests.speech.turns import checkpoint_of, ended, instance_of, submit_audio, turn

pytestmark = pytest.mark.django_db(transaction=True)


def submissions(speech: SpeechProcess) -> int:
    return speech.asked().get("submit", 0)


def test_a_recording_becomes_a_transcript_and_a_summary(
    serving: Kernel, recordings: Recordings
) -> None:
    job = submit_audio(recordings.url + "/sentence.wav", metadata={"mine": [1]})
    assert ended(serving, job).status == "completed"
    row = stored(job)
    assert row.status == "ready"
    assert "young man" in row.result["transcript"]
    assert row.result["summary"]
    assert row.result["final_url"] == recordings.url + "/sentence.wav"
    assert row.result["metadata"] == {"mine": [1]}
    assert recordings.asked == ["/sentence.wav"]


def test_it_is_submitted_once_and_holds_nothing_while_it_waits(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    before = submissions(speech)
    speech.switch(slow_seconds=1.5)
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    first = checkpoint_of(serving, job)
    assert set(first) == {
        *("provider", "task_id", "submitted_at", "deadline", "expires_at"),
        *("interval", "tolerance", "failures", "options"),
    }
    waiting = instance_of(serving, job)
    assert waiting.status == "waiting"
    assert waiting.claim_token is None
    turn(serving, 1.1)
    assert checkpoint_of(serving, job)["task_id"] == first["task_id"]
    done = ended(serving, job)
    assert done.output["transcribe_audio"]["task_id"] == first["task_id"]
    assert done.steps["transcribe_audio"].attempt == 1
    assert submissions(speech) == before + 1


def test_a_service_that_dies_and_comes_back_goes_on_with_the_same_task(
    kernel: Kernel, recordings: Recordings, tmp_path: Path
) -> None:
    with SpeechProcess(tmp_path) as mine:
        serve_media(kernel, media_ports(mine))
        mine.switch(slow_seconds=60)
        job = submit_audio(recordings.url + "/sentence.wav")
        turn(kernel)
        task_id = checkpoint_of(kernel, job)["task_id"]
        mine.kill()
        turn(kernel, 1.1)
        turn(kernel, 3.0)
        assert checkpoint_of(kernel, job)["failures"] == 2
        mine.start()
        done = ended(kernel, job)
        assert (done.status, done.output["transcribe_audio"]["task_id"]) == ("completed", task_id)
        assert submissions(mine) == 0, "it was submitted again after the restart"


def test_errors_for_a_while_are_waited_out(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    speech.switch(errors=2)
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    assert instance_of(serving, job).steps["transcribe_audio"].error is not None
    turn(serving, 5.0)
    turn(serving, 10.0)
    checkpoint = checkpoint_of(serving, job)
    speech.switch(errors=3)
    for number in (1, 2, 3):
        turn(serving, 40.0)
        assert checkpoint_of(serving, job)["failures"] == number
    done = ended(serving, job)
    assert done.status == "completed"
    assert done.output["transcribe_audio"]["task_id"] == checkpoint["task_id"]


def test_a_provider_that_stays_silent_fails_the_job_with_its_last_words(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    speech.switch(errors=1000)
    for _ in range(7):
        turn(serving, 60.0)
    row = stored(job)
    assert (row.status, row.error_code) == ("failed", "speech_unreachable")
    assert "6 times in a row" in row.error_message
    assert "answered 500" in row.error_message


def test_a_lost_task_is_submitted_anew_by_the_next_attempt(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    speech.switch(slow_seconds=60)
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    lost = checkpoint_of(serving, job)["task_id"]
    speech.lose(lost)
    speech.switch(slow_seconds=0)
    turn(serving, 1.1)
    assert instance_of(serving, job).steps["transcribe_audio"].error.code == "speech_task_lost"  # type: ignore[union-attr]
    done = ended(serving, job, timeout=80)
    assert done.status == "completed"
    assert done.output["transcribe_audio"]["task_id"] != lost


def test_a_stored_id_is_followed_where_the_provider_forgets_its_keys(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    before = submissions(speech)
    speech.switch(forget_keys=True)
    job = submit_audio(recordings.url + "/sentence.wav")
    assert ended(serving, job).status == "completed"
    assert submissions(speech) == before + 1


def test_the_deadline_is_looked_at_first(
    kernel: Kernel, recordings: Recordings, speech: SpeechProcess, database_time: DatabaseTime
) -> None:
    terms = SpeechTerms(interval=1.0, deadline=600.0, task_ttl=300.0)
    serve_media(kernel, media_ports(speech, terms=terms))
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(kernel)
    asked = speech.asked()
    database_time.advance(601)
    turn(kernel, 601)
    row = stored(job)
    assert (row.status, row.error_code) == ("failed", "speech_deadline")
    assert "600 s" in row.error_message
    assert speech.asked() == asked, "it was asked for after its deadline"


def test_a_task_nobody_asked_for_in_its_time_is_submitted_anew(
    kernel: Kernel, recordings: Recordings, speech: SpeechProcess, database_time: DatabaseTime
) -> None:
    terms = SpeechTerms(interval=1.0, deadline=6000.0, task_ttl=300.0)
    serve_media(kernel, media_ports(speech, terms=terms))
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(kernel)
    task_id = checkpoint_of(kernel, job)["task_id"]
    database_time.advance(301)
    turn(kernel, 301)
    error = instance_of(kernel, job).steps["transcribe_audio"].error
    assert error is not None
    assert error.code == "speech_task_expired"
    done = ended(kernel, job)
    # The provider knows the key, so it has nothing to do again.
    assert done.output["transcribe_audio"]["task_id"] == task_id


def test_a_task_is_asked_for_where_it_was_given_whatever_the_settings_say(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    speech.switch(slow_seconds=60)
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    ports = media_ports(speech)
    renamed = type(ports.speech)(providers={"other": speech.client}, default="other")
    serve_media(serving, replace(ports, speech=renamed))
    turn(serving, 1.1)
    row = stored(job)
    assert (row.status, row.error_code) == ("failed", "bad_setting")
    assert "'service'" in row.error_message


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"RIFF....WAVE and nothing else", "audio/wav", "unsupported_format"),
        (b"ID3 an mp3 of sorts", "audio/mpeg", "unsupported_format"),
        (b"<html>no</html>", "text/html", "unsupported_type"),
        (b"", "audio/wav", "no_audio"),
        (wav(b""), "audio/wav", "unsupported_format"),
        (wav(bytes(32_000)), "audio/wav", "no_speech"),
    ],
    ids=["broken", "mp3", "page", "empty", "no-samples", "silence"],
)
def test_what_is_no_speech_fails_with_a_reason(
    serving: Kernel, recordings: Recordings, body: bytes, kind: str, code: str
) -> None:
    job = submit_audio(recordings.put("/odd", body, kind=kind))
    assert ended(serving, job).status == "failed"
    row = stored(job)
    assert row.error_code == code
    assert len(row.error_message) > 20
    assert "Traceback" not in row.error_message


def test_a_retry_fetches_the_recording_again(serving: Kernel, recordings: Recordings) -> None:
    job = submit_audio(recordings.put("/later.wav", b"not yet a recording"))
    assert ended(serving, job).status == "failed"
    recordings.put("/later.wav", one_sentence())
    content.retry_job("acme", job.pk)
    assert ended(serving, job).status == "completed"
    assert recordings.asked == ["/later.wav", "/later.wav"]
    assert stored(job).round == 2


def test_a_cancel_while_it_waits_ends_the_workflow_and_stores_nothing_more(
    serving: Kernel, recordings: Recordings
) -> None:
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(serving)
    content.cancel_job("acme", job.pk)
    turn(serving, 5.0)
    assert instance_of(serving, job).status == "canceled"
    assert instance_of(serving, job).waits == ()
    kinds = set(ContentArtifact.objects.filter(job=job).values_list("kind", flat=True))
    assert kinds == {ArtifactKind.AUDIO.value}
    assert ContentJob.objects.get(pk=job.pk).status == "canceled"
