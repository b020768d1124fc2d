"""The composition port's adapters: an extractive summariser of our own, and any chat endpoint.

Guarantees: `choose_composer` needs no account and no network unless a base URL is set.
Leaves to others: storing summaries, and asking only once where asking costs money. Design 7.
"""

from jobs.composing.chat import ChatComposer
from jobs.composing.extractive import ExtractiveComposer
from jobs.ports.composition import Composer

__all__ = ["ChatComposer", "ExtractiveComposer", "choose_composer"]


def choose_composer(*, base_url: str = "", api_key: str = "", model: str = "") -> Composer:
    """Build the composer the settings ask for: a chat endpoint if `base_url` is set.

    Raises: ComposeRefused, code bad_setting, for a base URL without a model or one that is no
    http(s) address.
    """
    if not base_url.strip():
        return ExtractiveComposer()
    return ChatComposer(base_url=base_url.strip(), api_key=api_key, model=model)
