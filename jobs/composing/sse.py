"""Read a `text/event-stream` from raw bytes.

Guarantees: events come out in order whatever the chunk borders, line ends and split characters
are; a line or event beyond the limit is an error instead of memory. Pure. Leaves to others: what
the data means, and whether the stream may end where it ends.
"""

import codecs
from collections.abc import Iterable, Iterator

MAX_EVENT_CHARS = 1_000_000


class EventTooLong(ValueError):
    """One event is larger than any answer should be."""


def read_events(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event; several `data:` lines of one event are joined by newlines.

    Raises: EventTooLong.
    """
    data: list[str] = []
    size = 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
            data, size = [], 0
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
            size += len(value)
            if size > MAX_EVENT_CHARS:
                raise EventTooLong
    # Some servers leave out the last empty line.
    if data:
        yield "\n".join(data)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for chunk in chunks:
        # A carriage return at the very end may be half of a line end.
        text = rest + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""
        *lines, rest = _normal(text.removesuffix("\r")).split("\n")
        rest += held
        yield from lines
        if len(rest) > MAX_EVENT_CHARS:
            raise EventTooLong
    *lines, rest = _normal(rest + decoder.decode(b"", final=True)).split("\n")
    yield from lines
    if rest:
        yield rest


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
