"""Plain tables for terminals.

Guarantees: text that came from outside can neither break a row nor reach the terminal as a control
sequence; colours appear on a terminal only and never with NO_COLOR set.
Leaves to others: what is shown (the commands).
"""

import os
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

#: Longest cell, characters.
CELL_CHARS = 60

_COLOURS = {
    "completed": "32",
    "failed": "31",
    "failing": "31",
    "canceled": "90",
    "skipped": "90",
    "waiting": "33",
    "running": "36",
}


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, colour: bool) -> str:
    """Lay out rows below their headers; the last column is not padded."""
    cells = [[clean(value) for value in row] for row in rows]
    widths = [
        max(_width(line[column]) for line in [list(headers), *cells])
        for column in range(len(headers))
    ]
    lines = [_line(list(headers), widths), *(_line(row, widths, colour=colour) for row in cells)]
    return "\n".join(lines)


def unanswered(error: Exception) -> str:
    """Say that a server does not answer, and what to do."""
    return f"{error}. Start `make up` in another terminal, or name your servers (BATON_MONGO_URL)"


def clean(value: object) -> str:
    """Make a value one short printable line."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    text = printable(str(value))
    return text if len(text) <= CELL_CHARS else text[: CELL_CHARS - 1] + "…"


def printable(text: str) -> str:
    """Replace control characters and what cannot be encoded by a visible mark."""
    return "".join(
        "�" if unicodedata.category(char) in {"Cc", "Cf", "Cs"} else char for char in text
    )


def wants_colour(stream: Any) -> bool:
    """Tell whether the stream is a terminal whose user has not asked for NO_COLOR."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO | Any) -> bool:
    """Tell whether people are looking."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def duration(milliseconds: int | None) -> str:
    """Write a duration the way people say it."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def _line(cells: list[str], widths: list[int], *, colour: bool = False) -> str:
    padded = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        last = index == len(cells) - 1
        shown = cell if last else cell + " " * (width - _width(cell))
        code = _COLOURS.get(cell) if colour else None
        padded.append(f"\x1b[{code}m{shown}\x1b[0m" if code else shown)
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
