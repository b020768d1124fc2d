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


class ArticleInput(BaseModel):
    """What `content.article` gets: identities, and the options frozen at entry."""

    model_config = ConfigDict(extra="forbid")

    job_id: str
    tenant: str
    source_url: str
    max_sentences: int = SENTENCES_DEFAULT
    #: Wanted language of the summary; None leaves it to the page.
    language: str | None = None
    #: The client's own JSON object, handed through unchanged.
    metadata: dict[str, Any] = Field(default_factory=dict)


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
