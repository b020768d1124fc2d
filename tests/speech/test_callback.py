"""A provider that calls back wakes the workflow; one whose call is lost is asked all the same."""

import pytest
from django.conf import settings

from jobs.models import ProviderCallback
from kernel import Kernel
from tests.api.serving import running_server
from tests.dispatch.rows import stored
from tests.kit.waiting import eventually
from tests.speech.conftest import media_ports, serve_media
from tests.speech.service import Recordings, SpeechProcess
from tests.speech.turns import instance_of, submit_audio, turn

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_provider_s_call_wakes_the_workflow_before_its_next_question(
    kernel: Kernel, recordings: Recordings, speech: SpeechProcess, child_env: dict[str, str]
) -> None:
    env = {**child_env, "BATON_SECRET_KEY": settings.SECRET_KEY}
    with running_server(env) as server:
        serve_media(kernel, media_ports(speech, public_url=server.url))
        job = submit_audio(recordings.url + "/sentence.wav")
        turn(kernel)
        (wait,) = instance_of(kernel, job).waits
        assert (wait.kind, wait.signal_type) == ("signal", "provider_called")
        # No time passes for this kernel, so only the signal can wake it.
        eventually(lambda: instance_of(kernel, job).steps["transcribe_audio"].resume, timeout=60)
        resume = instance_of(kernel, job).steps["transcribe_audio"].resume
        assert resume is not None
        assert resume.kind == "signal"
    kernel.drain(["media"])
    assert stored(job).status == "ready"
    fact = ProviderCallback.objects.get()
    assert fact.workflow_id == instance_of(kernel, job).workflow_id
    assert fact.body["state"] == "succeeded"


def test_a_call_that_never_comes_is_made_up_for_by_asking(
    kernel: Kernel, recordings: Recordings, speech: SpeechProcess
) -> None:
    serve_media(kernel, media_ports(speech, public_url="http://127.0.0.1:1"))
    job = submit_audio(recordings.url + "/sentence.wav")
    turn(kernel)

    def ready() -> bool:
        turn(kernel, 1.1)
        return bool(stored(job).status == "ready")

    eventually(ready, timeout=60, interval=0.2)
    assert not ProviderCallback.objects.exists()
