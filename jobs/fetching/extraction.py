"""Markup becomes the few paragraphs people came for.

Guarantees: text without control characters, one paragraph a line, never empty; a title of one
line. Leaves to others: where the page came from and how its bytes were decoded.
"""

import re
import unicodedata
from dataclasses import dataclass
from html import unescape
from urllib.parse import unquote, urlsplit

import trafilatura
from trafilatura.settings import Document

from jobs.ports.errors import FetchRefused

MAX_TITLE_CHARS = 300
#: More tags than the longest articles have; extraction time grows with them.
MAX_TAGS = 150_000

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>")
_LANG = re.compile(
    r"<html\b[^>]{0,1000}?\s(?:xml:)?lang\s*=\s*[\"']?([A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_HEAD_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """What is worth keeping of a document."""

    title: str
    text: str
    language: str | None


def extract_html(markup: str, *, url: str) -> Extract:
    """Find the main text and title of an HTML page.

    Raises: FetchRefused, code no_text when there is no main text, too_large when the markup has
    more than `MAX_TAGS` tags.
    """
    if markup.count("<") > MAX_TAGS:
        raise FetchRefused(
            f"The page's markup has more than {MAX_TAGS} tags, the limit.", code="too_large"
        )
    head = markup[:_HEAD_CHARS]
    document = _read(_XML_DECLARATION.sub("", markup), url)
    text = _paragraphs(document.text or "") if document else ""
    if document is None or not text:
        raise FetchRefused(
            "The page holds no readable text; it may need scripts or a login.", code="no_text"
        )
    named = _TITLE.search(head)
    title = _one_line(document.title or (unescape(named[1]) if named else ""))
    lang = _LANG.search(head)
    return Extract(
        title=title or _name_of(url), text=text, language=lang[1].lower() if lang else None
    )


def extract_plain(text: str, *, url: str) -> Extract:
    """Take plain text as it is; a short first line followed by a blank one is its title.

    Raises: FetchRefused, code no_text, when there is only white space.
    """
    first, _, rest = text.strip().partition("\n")
    headed = bool(rest) and not rest.split("\n", 1)[0].strip() and len(first) <= MAX_TITLE_CHARS
    paragraphs = re.split(r"\n\s*\n", rest if headed else text)
    body = "\n".join(line for part in paragraphs if (line := _one_line(part)))
    if not body:
        raise FetchRefused("The document holds no text.", code="no_text")
    return Extract(title=_one_line(first) if headed else _name_of(url), text=body, language=None)


def _read(markup: str, url: str) -> Document | None:
    try:
        document = trafilatura.bare_extraction(
            markup,
            url=url,
            with_metadata=True,
            include_comments=False,
            include_tables=False,
            date_extraction_params={"original_date": True, "extensive_search": False},
        )
    except Exception as exc:  # whatever hostile markup does to a parser ends here
        raise FetchRefused(
            f"The page's markup could not be read ({type(exc).__name__}).", code="no_text"
        ) from exc
    return document if isinstance(document, Document) else None


def _paragraphs(text: str) -> str:
    return "\n".join(line for raw in text.splitlines() if (line := _one_line(raw)))


def _one_line(text: str) -> str:
    """Fold white space and drop control characters, which no store or reader wants."""
    kept = "".join(
        character if character.isprintable() or unicodedata.category(character) == "Cf" else " "
        for character in text
    )
    return " ".join(kept.split())


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path.rstrip("/").rpartition("/")[2], errors="replace")
    return _one_line(name)[:MAX_TITLE_CHARS] or parts.netloc
