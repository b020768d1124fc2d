"""A worker dies between the provider's answer and the commit that would have stored it."""

import pytest

from kernel import Kernel
from kernel.testing import TimeShift
from tests.api.serving import database_url
from tests.dispatch.rows import stored
from tests.kit.processes import python
from tests.speech.service import Recordings, SpeechProcess
from tests.speech.turns import ended, instance_of, submit_audio

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_next_worker_finds_the_task_that_was_made(
    serving: Kernel, recordings: Recordings, speech: SpeechProcess, child_env: dict[str, str]
) -> None:
    job = submit_audio(recordings.url + "/sentence.wav")
    before = speech.asked()
    env = {
        **child_env,
        "BATON_REDIS_URL": "",
        "BATON_DATABASE_URL": database_url(),
        "BATON_LEASE_SECONDS": "5",
        "BATON_FETCH_ALLOW_PRIVATE": "1",
    }
    arguments = ("media", "--speech", speech.url, "--die-after-submit")
    with python("-m", "tests.speech.worker", *arguments, env=env) as worker:
        assert worker.wait(30) == -9
    died = instance_of(serving, job)
    assert died.steps["transcribe_audio"].status == "running"
    assert died.steps["transcribe_audio"].checkpoint is None

    TimeShift(serving).advance(seconds=6)
    done = ended(serving, job)
    after = speech.asked()
    assert after["submit"] == before.get("submit", 0) + 2
    assert after["repeated submit"] == before.get("repeated submit", 0) + 1
    assert done.status == "completed"
    assert "young man" in stored(job).result["transcript"]
    assert recordings.asked == ["/sentence.wav"]
