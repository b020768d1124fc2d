"""The outside world as the activities get it: `ctx.ports`.

Guarantees: built from settings once per registration. Leaves to others: the adapters.
"""

from dataclasses import dataclass

from django.conf import settings

from jobs.composing import choose_composer
from jobs.fetching import PageFetcher, RecordingFetcher
from jobs.ports import Composer, PageSource, RecordingSource, SpeechDesk
from jobs.speech import open_desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where pages come from, and who summarises them."""

    pages: PageSource
    composer: Composer


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPorts(Ports):
    """And where recordings come from, and who turns them into text."""

    recordings: RecordingSource
    speech: SpeechDesk
    #: Where the API answers from a provider's point of view; empty: providers are only polled.
    public_url: str = ""


def ports_from_settings() -> MediaPorts:
    """Build the adapters the settings ask for.

    Raises:
        ComposeRefused, SpeechRefused: the settings of an endpoint contradict each other.
    """
    return MediaPorts(
        pages=PageFetcher(allow_private=settings.BATON_FETCH_ALLOW_PRIVATE),
        recordings=RecordingFetcher(allow_private=settings.BATON_FETCH_ALLOW_PRIVATE),
        composer=choose_composer(
            base_url=settings.BATON_LLM_URL or "",
            api_key=settings.BATON_LLM_KEY or "",
            model=settings.BATON_LLM_MODEL or "",
        ),
        speech=open_desk(
            service_url=settings.BATON_SPEECH_SERVICE_URL,
            endpoint_url=settings.BATON_SPEECH_URL or "",
            api_key=settings.BATON_SPEECH_KEY or "",
            model=settings.BATON_SPEECH_MODEL or "",
        ),
        public_url=settings.BATON_PUBLIC_URL or "",
    )
