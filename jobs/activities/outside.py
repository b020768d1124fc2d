"""The outside world as the activities get it: `ctx.ports`.

Guarantees: built from settings once per registration. Leaves to others: the adapters.
"""

from dataclasses import dataclass

from django.conf import settings

from jobs.composing import choose_composer
from jobs.fetching import PageFetcher
from jobs.ports import Composer, PageSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where pages come from, and who summarises them."""

    pages: PageSource
    composer: Composer


def ports_from_settings() -> Ports:
    """Build the adapters the settings ask for.

    Raises:
        ComposeRefused: the settings of the chat endpoint contradict each other.
    """
    return Ports(
        pages=PageFetcher(allow_private=settings.BATON_FETCH_ALLOW_PRIVATE),
        composer=choose_composer(
            base_url=settings.BATON_LLM_URL or "",
            api_key=settings.BATON_LLM_KEY or "",
            model=settings.BATON_LLM_MODEL or "",
        ),
    )
