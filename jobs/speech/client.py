"""The client of our own speech service (`manage.py speech_service`).

Guarantees: every call ends within its time; the idempotency key travels with a submission, so that
a repeat finds the task it made. Leaves to others: when to call.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from jobs.ports.bounds import Bounds, StopSign
from jobs.ports.errors import SpeechFailedForNow
from jobs.ports.speech import SpeechState, SpeechTask
from jobs.speech.asking import ask, check_base_url

_UNKNOWN = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClient:
    """A speech provider behind `POST {base_url}/tasks`; stateless, safe between threads.

    Raises: SpeechRefused, code bad_setting, when the base URL cannot be used.
    """

    base_url: str
    #: Seconds of one submission and of one question, by the wall clock.
    submit_timeout: float = 60.0
    query_timeout: float = 10.0

    def __post_init__(self) -> None:
        check_base_url(self.base_url, what="speech service's URL")

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
        """Hand a WAV file over. On repeat with the same key: the same task.

        Raises: SpeechRefused, SpeechFailedForNow, PortCancelled.
        """
        headers = {"Content-Type": "audio/wav", "Idempotency-Key": idempotency_key}
        if language:
            headers["Content-Language"] = language
        if callback_url:
            headers["Callback-Url"] = callback_url
        bounds = Bounds.of(timeout=self.submit_timeout, deadline=deadline, cancelled=cancelled)
        url = f"{self.base_url.rstrip('/')}/tasks"
        return _task(ask("POST", url, bounds=bounds, headers=headers, content=audio).body)

    def query(
        self, task_id: str, *, deadline: float | None = None, cancelled: StopSign | None = None
    ) -> SpeechTask:
        """Ask how a task stands. Raises: SpeechRefused, SpeechFailedForNow, PortCancelled."""
        bounds = Bounds.of(timeout=self.query_timeout, deadline=deadline, cancelled=cancelled)
        url = f"{self.base_url.rstrip('/')}/tasks/{quote(task_id, safe='')}"
        answer = ask("GET", url, bounds=bounds, expected=_UNKNOWN)
        if answer.status in _UNKNOWN:
            return SpeechTask(task_id=task_id, state=SpeechState.UNKNOWN)
        return _task(answer.body)


def _task(body: dict[str, Any]) -> SpeechTask:
    task_id, state = body.get("id"), body.get("state")
    if not isinstance(task_id, str) or not task_id or state not in set(SpeechState):
        raise SpeechFailedForNow(
            f"The speech service described a task in words nobody knows: {str(body)[:200]}.",
            code="cut_short",
        )
    return SpeechTask(
        task_id=task_id,
        state=SpeechState(state),
        text=str(body.get("text") or ""),
        reason=str(body.get("reason") or ""),
    )
