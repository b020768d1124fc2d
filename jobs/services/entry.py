"""What a client may ask for, checked once at entry and frozen.

Guarantees: an accepted entry can be stored, started and given back equal; every fault is named
with its place. Leaves to others: syntax of the request body (`jobs.api`), and whether the source
exists (`fetch_page`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from jobs.models import JobKind
from jobs.models.access import TENANT_CHARACTERS
from jobs.models.content import NOTIFY_URL
from jobs.plans import SENTENCES_DEFAULT, SENTENCES_MAX, SENTENCES_MIN, URL_CHARACTERS
from jobs.ports.errors import PortRefused
from jobs.services.errors import InvalidRequest, Problem
from jobs.services.web_address import is_web_address
from kernel import check_json
from kernel.limits import INPUT_BYTES

#: Kinds with a workflow behind them.
AVAILABLE_KINDS = frozenset(JobKind.values)
#: Options that say where a recording is; of those a kind has, it needs exactly one.
LIVE_EVENT, AUDIO_URL = "live_event", "audio_url"
_RECORDINGS = {
    JobKind.LIVE.value: (LIVE_EVENT,),
    JobKind.DIGEST.value: (AUDIO_URL, LIVE_EVENT),
}
#: The rest of a workflow's input is for ids, options and the URLs (at most four bytes a character).
METADATA_BYTES = INPUT_BYTES - 2 * 4 * URL_CHARACTERS - 2 * 1024
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
LIVE_EVENT_CHARACTERS = 40
_OPTIONAL = (NOTIFY_URL, LIVE_EVENT, AUDIO_URL)
_OPTIONS = frozenset({"max_sentences", "language", *_OPTIONAL})
_TENANT = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A checked request, defaults filled in."""

    kind: str
    source_url: str
    options: dict[str, Any]
    metadata: dict[str, Any]


def check_entry(
    *,
    tenant: str,
    kind: str,
    source_url: str,
    options: Mapping[str, Any] | None,
    metadata: object,
) -> Entry:
    """Return the entry to store.

    Raises:
        InvalidRequest: with every problem found.
        InvalidValue: metadata that could not be given back equal (ValueTooLarge: or too big).
    """
    options = {} if options is None else options
    problems = [
        *_kind(kind),
        *_source(kind, source_url),
        *_tenant(tenant),
        *_options(options),
        *_recording(kind, options),
    ]
    kept: dict[str, Any] = {}
    if isinstance(metadata, Mapping):
        kept = dict(metadata)
    elif metadata is not None:
        problems.append(Problem(pointer="/metadata", detail="Give a JSON object."))
    if problems:
        raise InvalidRequest(problems)
    # Checked as deep as it will lie in the input, so that the kernel takes what is accepted here.
    check_json({"metadata": kept}, limit_bytes=METADATA_BYTES, what="request")
    return Entry(
        kind=kind,
        source_url=source_url,
        options={
            "max_sentences": options.get("max_sentences", SENTENCES_DEFAULT),
            "language": options.get("language"),
            **{name: options[name] for name in _OPTIONAL if name in options},
        },
        metadata=kept,
    )


def _kind(kind: object) -> Iterator[Problem]:
    if kind not in AVAILABLE_KINDS:
        known = ", ".join(sorted(AVAILABLE_KINDS))
        yield Problem(pointer="/kind", detail=f"Not available; use one of: {known}.")


def _tenant(tenant: str) -> Iterator[Problem]:
    if len(tenant) > TENANT_CHARACTERS or not _TENANT.fullmatch(tenant):
        yield Problem(pointer="/tenant", detail="A tenant is a slug of at most 64 characters.")


def _source(kind: object, url: object) -> Iterator[Problem]:
    if kind != JobKind.LIVE:
        yield from _url(url)
    elif url != "":
        yield Problem(pointer="/source_url", detail="A live job's recording comes from its event.")


def _recording(kind: object, options: object) -> Iterator[Problem]:
    if not isinstance(options, Mapping):
        return
    possible = _RECORDINGS.get(str(kind), ())
    given = [name for name in (AUDIO_URL, LIVE_EVENT) if name in options]
    for name in given:
        if name not in possible:
            yield Problem(pointer=f"/options/{name}", detail=f"A job of kind {kind} has none.")
    if possible and len(given) != 1:
        one = "exactly one of: " if len(possible) > 1 else ""
        detail = f"A job of kind {kind} needs {one}{' or '.join(possible)}."
        yield Problem(pointer=f"/options/{possible[0]}", detail=detail)
    if AUDIO_URL in given and not is_web_address(options[AUDIO_URL]):
        detail = "Give an http or https URL of a WAV recording."
        yield Problem(pointer=f"/options/{AUDIO_URL}", detail=detail)
    event = options.get(LIVE_EVENT, "x")
    if not (isinstance(event, str) and 0 < len(event) <= LIVE_EVENT_CHARACTERS):
        yield Problem(pointer=f"/options/{LIVE_EVENT}", detail="Give the id of a live event.")


def _url(url: object) -> Iterator[Problem]:
    if not isinstance(url, str) or not url:
        yield Problem(pointer="/source_url", detail="Give an http or https URL.")
    elif len(url) > URL_CHARACTERS:
        yield Problem(pointer="/source_url", detail=f"At most {URL_CHARACTERS} characters.")
    elif not is_web_address(url):
        yield Problem(
            pointer="/source_url",
            detail="Give an http or https URL with a host and no spaces or control characters.",
        )


def _options(options: object) -> Iterator[Problem]:
    if not isinstance(options, Mapping):
        yield Problem(pointer="/options", detail="Give a JSON object.")
        return
    for name in sorted(str(name) for name in set(options) - _OPTIONS):
        yield Problem(pointer=f"/options/{name}", detail="Unknown option.")
    sentences = options.get("max_sentences", SENTENCES_DEFAULT)
    if (
        isinstance(sentences, bool)
        or not isinstance(sentences, int)
        or not SENTENCES_MIN <= sentences <= SENTENCES_MAX
    ):
        yield Problem(
            pointer="/options/max_sentences",
            detail=f"Give a whole number from {SENTENCES_MIN} to {SENTENCES_MAX}.",
        )
    language = options.get("language")
    if language is not None and not (
        isinstance(language, str) and len(language) <= 35 and _LANGUAGE.fullmatch(language)
    ):
        yield Problem(
            pointer="/options/language", detail="Give a language tag such as en or pt-BR."
        )
    if NOTIFY_URL in options and (refusal := _refusal_of_url(options[NOTIFY_URL])):
        yield Problem(pointer=f"/options/{NOTIFY_URL}", detail=refusal)


def _refusal_of_url(url: object) -> str | None:
    """Say why an address cannot be told of anything; None when its text shows nothing wrong.

    What its name leads to is looked at with each attempt, because that may change at any time.
    """
    if not isinstance(url, str) or len(url) > URL_CHARACTERS or not is_web_address(url):
        return f"Give an http or https URL of at most {URL_CHARACTERS} characters."
    # The package brings page extraction along, which this one question does not need at start.
    from jobs.fetching.guard import Guard

    try:
        Guard(allow_private=settings.BATON_FETCH_ALLOW_PRIVATE).check_url(url)
    except PortRefused as exc:
        return str(exc)
    return None
