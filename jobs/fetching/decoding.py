"""Bytes of a page become text, in the encoding they were really written in.

Order of belief: byte order mark, HTTP header, the page's own `meta`, UTF-8, detection by content.
A label is believed only if the bytes agree with it: labels lie, and a wrong one turns a page into
mojibake that nobody notices before the summary is read. A label that fits except for a few broken
bytes still wins over a guess.

Guarantees: always gives text, never raises. Leaves to others: rejecting what is no text at all.
Pure.
"""

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

#: Labels whose users mean a larger encoding: the browsers' table where Python's differs.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
#: Labels browsers know and Python does not.
_UNKNOWN_TO_PYTHON = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "unicode-1-1-utf-8": "utf-8",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "x-x-big5": "big5hkscs",
    "ks_c_5601-1987": "cp949",
    "iso-8859-8-i": "iso8859-8",
    "x-mac-roman": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
}
#: Python codecs that turn bytes into text without being a page's encoding.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
)

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta\b[^>]{0,512}?\bcharset\s*=\s*[\"']?\s*([\w.:+-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']([\w.:+-]{1,40})")
_NO_PROSE = re.compile(rb"<(script|style)\b.*?</\1\s*>|<[^>]*>|\s+", re.DOTALL | re.IGNORECASE)

#: Where a `meta` counts (browsers look at 1,024 bytes, real pages are later), and how much text
#: detection looks at.
_META_BYTES = 8192
_DETECT_BYTES = 32_768
#: Share of the non-ASCII characters that may be broken before a label counts as wrong.
_BROKEN_SHARE = 0.1
#: Where the shape of UTF-16 is looked for.
_SHAPE_BYTES = 2048


def decode(raw: bytes, *, label: str | None, markup: bool = True) -> tuple[str, str]:
    """Read `raw`, whose HTTP header named `label`; gives the text and the encoding used.

    `markup` says whether the page is HTML, which may name its own encoding.
    """
    mark = next(((bom, name) for bom, name in _BYTE_ORDER_MARKS if raw.startswith(bom)), None)
    body = raw[len(mark[0]) :] if mark else raw
    candidates = list(_candidates(raw, label, mark[1] if mark else None, markup))
    for encoding in candidates:
        text = _strictly(body, encoding, markup)
        if text is not None:
            return text, encoding
    for encoding in candidates:
        text = _nearly(body, encoding)
        if text is not None:
            return text, encoding
    return _detected(body)


def codec_of(label: str) -> str | None:
    """Give the Python codec a page means by `label`; None if nobody knows it."""
    wanted = label.strip().strip("\"'").lower()
    if wanted in _UNKNOWN_TO_PYTHON:
        return _UNKNOWN_TO_PYTHON[wanted]
    try:
        info = codecs.lookup(wanted)
        # Codecs such as "hex" are no text encodings; decoding with them raises LookupError.
        b"text".decode(info.name, errors="replace")
    except (LookupError, ValueError, UnicodeError):
        return None
    name = info.name
    return None if name in _NO_CHARSETS else _MEANT.get(name, name)


def _candidates(raw: bytes, label: str | None, mark: str | None, markup: bool) -> Iterator[str]:
    header = codec_of(label) if label else None
    meta = _meta(raw) if markup else None
    declared = [name for name in (mark, header, meta) if name is not None]
    # UTF-8 does not happen by accident, while a one-byte encoding "fits" every page there is.
    if "utf-8" not in declared and not raw.isascii() and _is_utf8(raw):
        yield "utf-8"
    seen: set[str] = set()
    for name in (*declared, "utf-8", *_by_shape(raw, markup)):
        if name not in seen:
            seen.add(name)
            yield name


def _meta(raw: bytes) -> str | None:
    head = _COMMENT.sub(b"", raw[:_META_BYTES])
    found = _META.search(head) or _XML.search(head)
    name = codec_of(found[1].decode("ascii")) if found else None
    # Whoever can read the declaration byte by byte is not reading UTF-16.
    return "utf-8" if name is not None and name.startswith(("utf-16", "utf-32")) else name


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _by_shape(raw: bytes, markup: bool) -> Iterator[str]:
    """Recognise UTF-16 without a mark by where the zero bytes of its ASCII part stand."""
    head = raw[:_SHAPE_BYTES]
    share = 0.2 if markup else 0.3
    pairs = max(1, len(head) // 2)
    odd, even = head[1::2].count(0) / pairs, head[::2].count(0) / pairs
    if odd > share and even < share / 4:
        yield "utf-16-le"
    if even > share and odd < share / 4:
        yield "utf-16-be"


def _strictly(body: bytes, encoding: str, markup: bool) -> str | None:
    if markup and encoding.startswith(("utf-16", "utf-32")) and b"\0" not in body[:_SHAPE_BYTES]:
        return None
    try:
        text = body.decode(encoding)
    except (UnicodeError, ValueError):
        return None
    # Zero characters show that a wide encoding is being read in narrow steps.
    return None if "\0" in text[:_SHAPE_BYTES] else text


def _nearly(body: bytes, encoding: str) -> str | None:
    if encoding.startswith(("utf-16", "utf-32")):
        return None
    text = body.decode(encoding, errors="replace")
    broken = text.count("�")
    foreign = sum(not character.isascii() for character in text)
    return text if broken <= foreign * _BROKEN_SHARE else None


def _detected(body: bytes) -> tuple[str, str]:
    """Guess from the prose alone: markup is ASCII in every encoding and hides the evidence."""
    prose = _NO_PROSE.sub(b" ", body[: 8 * _DETECT_BYTES])[:_DETECT_BYTES]
    best = from_bytes(prose).best()
    if best is not None:
        encoding = codec_of(best.encoding) or "utf-8"
        return body.decode(encoding, errors="replace"), encoding
    return body.decode("cp1252", errors="replace"), "cp1252"
