"""A speech service, a site with recordings, and a kernel whose definitions use both."""

from collections.abc import Iterator

import pytest

from jobs.activities.outside import MediaPorts
from jobs.composing import ExtractiveComposer
from jobs.fetching import PageFetcher, RecordingFetcher
from jobs.ports import SpeechDesk, SpeechTerms
from jobs.workflows.audio import audio_definition
from jobs.workflows.digest import digest_definition
from jobs.workflows.live import live_definition
from kernel import Kernel
from tests.dispatch.conftest import database_time, kernel
from tests.speech.service import Recordings, SpeechProcess, one_sentence, serving_recordings

__all__ = ["database_time", "kernel"]


@pytest.fixture(scope="session")
def shared_speech(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechProcess]:
    """One service for the tests that do not end it."""
    with SpeechProcess(tmp_path_factory.mktemp("speech")) as process:
        yield process


@pytest.fixture
def speech(shared_speech: SpeechProcess) -> SpeechProcess:
    """The service with every fault switched off."""
    shared_speech.switch(slow_seconds=0, errors=0, forget_keys=False)
    return shared_speech


@pytest.fixture
def recordings() -> Iterator[Recordings]:
    """A site with a sentence at /sentence.wav."""
    with serving_recordings() as site:
        site.put("/sentence.wav", one_sentence())
        yield site


def media_ports(
    speech: SpeechProcess, *, public_url: str = "", terms: SpeechTerms | None = None
) -> MediaPorts:
    """Build ports that reach the test's own service; local addresses are allowed."""
    return MediaPorts(
        pages=PageFetcher(allow_private=True),
        recordings=RecordingFetcher(allow_private=True),
        composer=ExtractiveComposer(),
        speech=SpeechDesk(
            providers={"service": speech.client},
            default="service",
            terms=terms or SpeechTerms(interval=1.0, tolerance=5),
        ),
        public_url=public_url,
    )


def serve_media(kernel: Kernel, ports: MediaPorts) -> Kernel:
    """Register the workflows that work with sound."""
    for build in (audio_definition, live_definition, digest_definition):
        kernel.register(build(ports))
    return kernel


@pytest.fixture
def serving(kernel: Kernel, speech: SpeechProcess) -> Kernel:
    """The test's kernel with the media workflows registered."""
    return serve_media(kernel, media_ports(speech))
