"""Transcribe by any OpenAI-compatible endpoint: `POST {base_url}/audio/transcriptions`.

Such an endpoint answers at once, so the task is over when it is submitted and there is nothing to
ask for later. The idempotency key travels along; an endpoint that ignores it may be paid twice when
a worker dies between its answer and the commit.

Guarantees: one call, bounded, its failures named; the key appears in no message. Leaves to others:
keeping the transcript.
"""

import secrets
from dataclasses import dataclass, field

from jobs.ports.bounds import Bounds, StopSign
from jobs.ports.errors import SpeechFailedForNow, SpeechRefused
from jobs.ports.speech import SpeechState, SpeechTask
from jobs.speech.asking import ask, check_base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiTranscriber:
    """A speech provider that answers at once; stateless, safe between threads.

    Raises: SpeechRefused, code bad_setting, when base URL, key or model cannot be used.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    #: Seconds for the whole answer, by the wall clock.
    timeout: float = 240.0

    def __post_init__(self) -> None:
        check_base_url(self.base_url, what="transcription endpoint's base URL")
        if not (self.api_key.isascii() and (self.api_key.isprintable())):
            raise SpeechRefused("The speech key holds characters no key has.", code="bad_setting")
        if not self.model.strip():
            raise SpeechRefused(
                "A transcription endpoint is set, but no model to ask for.", code="bad_setting"
            )

    def submit(
        self,
        audio: bytes,
        *,
        language: str | None,
        idempotency_key: str,
        callback_url: str | None = None,
        deadline: float | None = None,
        cancelled: StopSign | None = None,
    ) -> SpeechTask:
        """Send the recording and wait for its text; there is nothing to call back for.

        Raises: SpeechRefused, SpeechFailedForNow, PortCancelled.
        """
        del callback_url
        fields = {"model": self.model, "response_format": "json"}
        if language:
            # The endpoint knows languages, not regions.
            fields["language"] = language.partition("-")[0].lower()
        boundary = secrets.token_hex(16)
        headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Idempotency-Key": idempotency_key,
            "Accept-Encoding": "identity",
        }
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        answer = ask(
            "POST",
            f"{self.base_url.rstrip('/')}/audio/transcriptions",
            bounds=Bounds.of(timeout=self.timeout, deadline=deadline, cancelled=cancelled),
            headers=headers,
            content=_form(fields, audio, boundary),
        )
        text = answer.body.get("text")
        if not isinstance(text, str):
            raise SpeechFailedForNow(
                "The transcription endpoint answered without a text.", code="cut_short"
            )
        return SpeechTask(
            task_id=f"{self.model}:{idempotency_key}", state=SpeechState.SUCCEEDED, text=text
        )

    def query(
        self, task_id: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> SpeechTask:
        """Say that nothing is kept: such an endpoint has no tasks. Never raises."""
        del deadline, cancelled
        return SpeechTask(task_id=task_id, state=SpeechState.UNKNOWN)


def _form(fields: dict[str, str], audio: bytes, boundary: str) -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="recording.wav"\r\n'
        "Content-Type: audio/wav\r\n\r\n"
    ).encode()
    return b"".join([*parts, head, audio, f"\r\n--{boundary}--\r\n".encode()])
