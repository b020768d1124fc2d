"""Which JSON values can be kept and given back equal, checked before any write (design 1.3).

Everything JSON can say is kept, whatever its keys look like. Refused with a typed error naming the
place: integers beyond 64 bit, NaN and infinities, NUL in keys, lone surrogates, nesting beyond
`limits.NESTING_LEVELS`, anything that is no JSON value, and sizes over the limit.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from kernel import limits
from kernel.errors import InvalidValue, ValueTooLarge

_INT64: Final = range(-(2**63), 2**63)
_Frame = tuple[object, str, int]


def check_json(value: object, *, limit_bytes: int, what: str) -> int:
    """Return the size of `value` in bytes of compact UTF-8 JSON.

    Raises:
        InvalidValue: something in it cannot be kept; `path` says where, `reason` what to do.
        ValueTooLarge: it is longer than `limit_bytes`.
    """
    _check_parts(value, limit_bytes, what)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > limit_bytes:
        raise ValueTooLarge(size_bytes=size, limit_bytes=limit_bytes, what=what)
    return size


def copied(value: Any) -> Any:
    """Return a checked JSON value that shares no part with `value`, whoever changes either."""
    kind = type(value)
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if kind is list else value


def _check_parts(value: object, limit_bytes: int, what: str) -> None:
    """Walk without recursion, so that no nesting can exhaust the stack."""
    todo: list[_Frame] = [(value, "$", 0)]
    seen = 0
    while todo:
        part, path, depth = todo.pop()
        if depth > limits.NESTING_LEVELS:
            raise InvalidValue(
                f"nested deeper than {limits.NESTING_LEVELS} levels", path=path, what=what
            )
        reason = _refusal(part)
        if reason:
            raise InvalidValue(reason, path=path, what=what)
        if isinstance(part, list | dict):
            seen += len(part)
            if seen > limit_bytes:
                # Every part takes a byte at least, so this bounds the walk even through a value
                # that holds itself, or the same part many times.
                raise ValueTooLarge(size_bytes=seen, limit_bytes=limit_bytes, what=what)
        if type(part) is list:
            todo.extend((item, f"{path}[{i}]", depth + 1) for i, item in enumerate(part))
        elif type(part) is dict:
            for key, item in part.items():
                reason = _refused_key(key)
                if reason:
                    raise InvalidValue(reason, path=path, what=what)
                todo.append((item, f"{path}.{key[:40]}", depth + 1))


def _refusal(part: object) -> str | None:
    kind = type(part)
    if part is None or kind is bool or kind is list or kind is dict:
        return None
    if kind is int:
        assert isinstance(part, int)
        return None if part in _INT64 else "an integer beyond 64 bit; pass it as a string"
    if kind is float:
        assert isinstance(part, float)
        return None if math.isfinite(part) else f"{part} is no JSON number; pass None or a string"
    if kind is str:
        assert isinstance(part, str)
        return _refused_text(part)
    return (
        f"{kind.__name__} is no JSON value; convert it to str, int, float, bool, None, list or dict"
    )


def _refused_key(key: object) -> str | None:
    if type(key) is not str:
        return f"a key is a {type(key).__name__}; JSON keys are strings"
    if "\x00" in key:
        return "a key holds a NUL character, which the database cannot keep; remove it"
    return _refused_text(key)


def _refused_text(text: str) -> str | None:
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "text with a lone surrogate is not valid Unicode; replace or remove it"
    return None
