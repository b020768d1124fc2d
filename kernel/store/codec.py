"""How JSON values travel to the database and back unchanged (design 1.3).

A key that begins with `$` (or with the escape itself) is stored behind `~`, because the driver
turns `{"$ref": …, "$id": …}` into an object of its own. Integers come back as plain `int`. Callers
check values first (`kernel.json_values`); nothing is refused here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

_ESCAPE: Final = "~"
_ESCAPED: Final = ("$", _ESCAPE)
_AS_THEY_ARE: Final = frozenset({str, int, bool, float, datetime, type(None)})


def to_stored(value: Any) -> Any:
    """Return a JSON value with every risky key escaped; depth is bounded by the check before."""
    if isinstance(value, dict):
        return {_escape(key): to_stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_stored(item) for item in value]
    return value


def from_stored(value: Any) -> Any:
    """Return a stored value as it was handed in; also maps whole documents to plain values."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    # Leaves are told apart here: a call for each would be most of what reading a document costs.
    if isinstance(value, dict):
        return {
            key[1:] if key.startswith(_ESCAPE) else key: item
            if type(item) in _AS_THEY_ARE
            else from_stored(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [item if type(item) in _AS_THEY_ARE else from_stored(item) for item in value]
    return int(value) if isinstance(value, int) else value


def _escape(key: str) -> str:
    return _ESCAPE + key if key.startswith(_ESCAPED) else key
