"""A kernel that serves live events and the jobs that wait for them; nothing is recognised here."""

import pytest

from jobs.activities.outside import MediaPorts
from jobs.composing import ExtractiveComposer
from jobs.fetching import PageFetcher, RecordingFetcher
from jobs.speech import open_desk
from jobs.workflows.audio import audio_definition
from jobs.workflows.digest import digest_definition
from jobs.workflows.fanout import fanout_definition
from jobs.workflows.live import live_definition
from jobs.workflows.watch import watch_definition
from kernel import Kernel
from tests.dispatch.conftest import kernel
from tests.speech.conftest import recordings, shared_speech, speech

__all__ = ["kernel", "recordings", "shared_speech", "speech"]

#: Nobody listens there.
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def serving(kernel: Kernel) -> Kernel:
    """The test's kernel with every waiting workflow registered; the speech service is away."""
    ports = MediaPorts(
        pages=PageFetcher(allow_private=True),
        recordings=RecordingFetcher(allow_private=True),
        composer=ExtractiveComposer(),
        speech=open_desk(service_url=NOWHERE),
    )
    for build in (audio_definition, live_definition, digest_definition):
        kernel.register(build(ports))
    kernel.register(watch_definition())
    kernel.register(fanout_definition())
    return kernel
