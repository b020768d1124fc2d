"""What commands take for text and for numbers: types for their parsers.

Guarantees: a number is what its plain ASCII digits say (`1_0`, other scripts' digits and what would
round to 0, which often means unlimited, are refused), and text is such that a database can look it
up. Each refusal is one line that says what to write.
Leaves to others: bounds that only one command knows.
"""

import math
import re
from argparse import ArgumentTypeError

_WHOLE_DIGITS = 9
_PORT_MAX = 65535
_DECIMAL = re.compile(r"(?P<digits>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def whole(text: str) -> int:
    """Read a whole number from 0. Raises: ArgumentTypeError."""
    if text.isascii() and text.isdecimal() and len(text) <= _WHOLE_DIGITS:
        return int(text)
    raise ArgumentTypeError(
        f"{shown(text)} is no whole number from 0 to {10**_WHOLE_DIGITS - 1}: write digits"
    )


def count(text: str) -> int:
    """Read how many there are to be of something that is needed. Raises: ArgumentTypeError."""
    value = whole(text)
    if value == 0:
        raise ArgumentTypeError("there must be one at least")
    return value


def port(text: str) -> int:
    """Read the number of a TCP port, 0 for any that is free. Raises: ArgumentTypeError."""
    value = whole(text)
    if value > _PORT_MAX:
        raise ArgumentTypeError(f"{shown(text)} is no port: they go up to {_PORT_MAX}")
    return value


def number(text: str) -> float:
    """Read a number from 0, with a fraction or without. Raises: ArgumentTypeError."""
    found = _DECIMAL.fullmatch(text)
    value = float(text) if found else math.nan
    if found is None or not math.isfinite(value):
        raise ArgumentTypeError(f"{shown(text)} is no number from 0: write digits, as in 10 or 0.5")
    if value == 0 and found["digits"].strip("0."):
        raise ArgumentTypeError(f"{shown(text)} is too small to be told from 0")
    return value


def above_zero(text: str) -> float:
    """Read a number above 0. Raises: ArgumentTypeError."""
    value = number(text)
    if value == 0:
        raise ArgumentTypeError(f"{shown(text)} is not above 0")
    return value


def word(text: str) -> str:
    """Take text that a database can look up. Raises: ArgumentTypeError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"{shown(text)} is no valid Unicode text") from None
    if "\0" in text:
        raise ArgumentTypeError(f"{shown(text)} holds a NUL character, which no name has")
    return text


def shown(text: str) -> str:
    """Quote what was given, in one short line that any terminal can print."""
    return ascii(text) if len(text) <= 40 else f"{text[:40]!a}..."
