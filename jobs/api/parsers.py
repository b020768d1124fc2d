"""Read request bodies: strict JSON of bounded size.

Guarantees: what parses comes back equal; repeated names, NaN, Infinity, numbers that overflow and
deep nesting are refused with a typed problem, and a body over the limit is not read to its end.
Leaves to others: which fields a request has (``jobs.api.serializers``).
"""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from jobs.api.errors import Refusal

#: Largest body of a request, bytes.
BODY_BYTES = 256 * 1024
#: Deepest nesting of a body, levels.
NESTING_LEVELS = 128
#: Digits of the largest 64-bit integer; longer literals cannot be kept.
_INTEGER_DIGITS = 20


class StrictJSONParser(BaseParser):
    """Parse ``application/json`` without forgiving anything."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,  # noqa: ARG002 -- DRF's signature
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the parsed body.

        Raises:
            Refusal: ``malformed-json``, ``value-not-kept`` or ``too-large``.
        """
        declared = _declared_length(parser_context)
        if declared is not None and declared > BODY_BYTES:
            raise _too_large()
        raw = stream.read(BODY_BYTES + 1)
        if len(raw) > BODY_BYTES:
            raise _too_large()
        return loads(raw)


def loads(raw: bytes) -> Any:
    """Parse bytes as strict JSON. Raises: Refusal, naming what is wrong."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("malformed-json", f"The body is not UTF-8 at byte {error.start}.") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_names,
            parse_constant=_no_constant,
            parse_int=_bounded_integer,
            parse_float=_finite_float,
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}, column {error.colno}."
        raise Refusal("malformed-json", detail) from None
    if _depth_exceeds(value, NESTING_LEVELS):
        raise _too_deep()
    return value


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refusal("malformed-json", "An object names the same member twice.")
    return members


def _no_constant(literal: str) -> Any:
    raise Refusal("malformed-json", f"{literal} is not JSON.")


def _bounded_integer(literal: str) -> int:
    if len(literal) > _INTEGER_DIGITS or not -(2**63) <= int(literal) < 2**63:
        raise Refusal("value-not-kept", "An integer does not fit into 64 bit.")
    return int(literal)


def _finite_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise Refusal("value-not-kept", "A number is too large to be kept.")
    return value


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def _declared_length(context: Mapping[str, Any] | None) -> int | None:
    request = (context or {}).get("request")
    declared = request.META.get("CONTENT_LENGTH") if request is not None else None
    return int(declared) if declared and str(declared).isdecimal() else None


def _too_large() -> Refusal:
    detail = f"The body may have {BODY_BYTES} bytes at most."
    return Refusal("too-large", detail, limit_bytes=BODY_BYTES)


def _too_deep() -> Refusal:
    return Refusal("malformed-json", f"The body nests deeper than {NESTING_LEVELS} levels.")
