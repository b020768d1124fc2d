"""Speech recognition: a small service of our own, and clients of it and of any compatible endpoint.

```
worker ─▶ ServiceClient ─HTTP─▶ manage.py speech_service: server ─▶ tasks (SQLite) ─▶ recogniser
       └▶ OpenAiTranscriber ─HTTP─▶ any OpenAI-compatible transcription endpoint
```

Guarantees: `open_desk` needs no account and no internet unless an endpoint is set; importing this
package loads no recogniser. Leaves to others: following a task (`jobs.activities.speech`).
Design 7.
"""

from jobs.ports.speech import SpeechDesk, SpeechProvider, SpeechTerms
from jobs.speech.client import ServiceClient
from jobs.speech.openai import OpenAiTranscriber

__all__ = ["ENDPOINT", "SERVICE", "OpenAiTranscriber", "ServiceClient", "open_desk"]

#: Names under which tasks are stored; they never change their meaning.
SERVICE = "service"
ENDPOINT = "openai"


def open_desk(
    *, service_url: str, endpoint_url: str = "", api_key: str = "", model: str = ""
) -> SpeechDesk:
    """Build the desk the settings ask for: the compatible endpoint if one is set, else the service.

    Both stay known, so that a task is followed where it was submitted after the setting changed.
    Raises: SpeechRefused, code bad_setting, for an address or model that cannot be used.
    """
    providers: dict[str, SpeechProvider] = {SERVICE: ServiceClient(base_url=service_url)}
    if endpoint_url.strip():
        providers[ENDPOINT] = OpenAiTranscriber(
            base_url=endpoint_url.strip(), api_key=api_key, model=model
        )
    return SpeechDesk(
        providers=providers,
        default=ENDPOINT if ENDPOINT in providers else SERVICE,
        terms=SpeechTerms(),
    )
