"""The plans of the reference business: what publishers know of its workflows.

Guarantees: importable by every process; imports no activity code. Leaves to others: the
definitions (`jobs.workflows`), which only workers import.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from kernel import Plan

#: Bounds of what a client may ask for.
SENTENCES_MIN, SENTENCES_MAX, SENTENCES_DEFAULT = 1, 20, 5
URL_CHARACTERS = 2048


class ContentInput(BaseModel):
    """What every content workflow gets: identities, and the options frozen at entry."""

    model_config = ConfigDict(extra="forbid")

    job_id: str
    tenant: str
    source_url: str
    max_sentences: int = SENTENCES_DEFAULT
    #: Wanted language of the summary; None leaves it to the page.
    language: str | None = None
    #: The client's own JSON object, handed through unchanged.
    metadata: dict[str, Any] = Field(default_factory=dict)


class ArticleInput(ContentInput):
    """What `content.article` gets: `source_url` is the page."""


class AudioInput(ContentInput):
    """What `content.audio` gets: `source_url` is the recording."""


class LiveInput(ContentInput):
    """What `content.live` gets: the event whose recording is awaited; `source_url` is empty."""

    live_event: str


class DigestInput(ContentInput):
    """What `content.digest` gets: `source_url` is the page, beside it one recording.

    The recording is at `audio_url`, or will be `live_event`'s.
    """

    audio_url: str | None = None
    live_event: str | None = None


ARTICLE = Plan(
    "content.article",
    queue="content",
    input=ArticleInput,
    steps=["preprocess", "fetch_page", "compose", "finalize"],
)


class NotifyInput(BaseModel):
    """What `content.notify` gets: the name of a row that says the rest."""

    model_config = ConfigDict(extra="forbid")

    notification_id: str
    tenant: str


NOTIFY = Plan("content.notify", queue="content", input=NotifyInput, steps=["deliver"])

AUDIO = Plan(
    "content.audio",
    queue="media",
    input=AudioInput,
    steps=["preprocess", "transcribe_audio", "compose", "finalize"],
)
LIVE = Plan(
    "content.live",
    queue="media",
    input=LiveInput,
    steps=["preprocess", "transcribe_audio", "compose", "finalize"],
)
DIGEST = Plan(
    "content.digest",
    queue="media",
    input=DigestInput,
    steps=["fetch_page", "transcribe_audio", "compose", "choose", "finalize"],
    depends_on={
        "fetch_page": [],
        "transcribe_audio": [],
        "compose": ["fetch_page", "transcribe_audio"],
        "choose": ["compose"],
        "finalize": ["choose"],
    },
)


class WatchInput(BaseModel):
    """What `live.watch` and `live.fanout` get: the event they work for."""

    model_config = ConfigDict(extra="forbid")

    event_id: str
    tenant: str


WATCH = Plan("live.watch", queue="distribution", input=WatchInput, steps=["observe", "publish"])
FANOUT = Plan("live.fanout", queue="distribution", input=WatchInput, steps=["notify"])
