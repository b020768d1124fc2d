"""Any JSON value is kept or refused with a typed error that names the place."""

import datetime as dt
import enum
import json
import threading
import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel import InvalidValue, ValueTooLarge, check_json
from kernel.limits import NESTING_LEVELS

MIB = 1024 * 1024

#: Also what JSON text cannot say, and what the database cannot keep.
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs", "L"]))
    | st.binary()
    | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def check(value: object, limit_bytes: int = 100_000) -> int:
    return check_json(value, limit_bytes=limit_bytes, what="value")


def measured(value: object) -> tuple[int, InvalidValue | None]:
    try:
        return check(value), None
    except InvalidValue as refused:
        return 0, refused


def nested(levels: int, *, of: type = list) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if of is list else {"k": value}
    return value


@given(ANYTHING)
@example({"$ref": "a", "$id": "b"})
@example({"": {"$": {".": None}}})
@example("\x00")
def test_every_value_is_measured_or_refused_as_invalid(value: object) -> None:
    size, refused = measured(value)
    if refused is not None:
        assert refused.path.startswith("$")
        assert refused.reason
    else:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        assert size == len(text.encode())


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (2**63, "$", "64 bit"),
        (-(2**63) - 1, "$", "64 bit"),
        (10**5000, "$", "64 bit"),
        ({"a": [1, {"b": 2**64}]}, "$.a[1].b", "64 bit"),
        ({"a": [float("nan")]}, "$.a[0]", "no JSON number"),
        ([float("inf")], "$[0]", "no JSON number"),
        ({"a": "\ud800"}, "$.a", "surrogate"),
        ({"a": {"\udfff": 1}}, "$.a", "surrogate"),
        ({"a": {"b\x00": 1}}, "$.a", "NUL"),
        ({"a": {1: 1}}, "$.a", "keys are strings"),
        ({10**5000: 1}, "$", "keys are strings"),
        ({None: 1}, "$", "keys are strings"),
        ({"a": (1, 2)}, "$.a", "tuple is no JSON value"),
        ({"a": {1, 2}}, "$.a", "set is no JSON value"),
        ([b"x"], "$[0]", "bytes is no JSON value"),
        (dt.datetime.now(dt.UTC), "$", "datetime is no JSON value"),
        (uuid.UUID(int=1), "$", "UUID is no JSON value"),
        (threading.Lock(), "$", "lock is no JSON value"),
        (enum.IntEnum("E", "A").A, "$", "E is no JSON value"),  # type: ignore[attr-defined]
        (type("Text", (str,), {})("x"), "$", "Text is no JSON value"),
        ((n for n in range(3)), "$", "generator is no JSON value"),
    ],
    ids=lambda part: type(part).__name__,  # a huge integer has no text
)
def test_what_cannot_be_kept_is_refused_with_place_and_reason(
    value: object, path: str, reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason) as refused:
        check(value)
    assert refused.value.path == path


@pytest.mark.parametrize(
    "value",
    [2**63 - 1, -(2**63), "\x00", "𝄞", {"": 1, "$a": 1, "a.b": 1, "~": 1}, -0.0, 1e308, [], {}],
)
def test_everything_json_can_say_is_kept(value: object) -> None:
    assert check(value) == len(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    )


@pytest.mark.parametrize("of", [list, dict])
def test_nesting_is_bounded(of: type) -> None:
    check(nested(NESTING_LEVELS, of=of))
    for levels in (NESTING_LEVELS + 1, 200, 5000):
        with pytest.raises(InvalidValue, match="nested deeper than 100"):
            check(nested(levels, of=of))


def test_a_value_that_holds_itself_is_refused() -> None:
    inside: list[Any] = []
    inside.append(inside)
    with pytest.raises(InvalidValue):
        check(inside)
    both: dict[str, Any] = {"a": [], "b": []}
    both["a"] = both["b"] = [both] * 1000
    with pytest.raises(InvalidValue):
        check(both)


def test_a_value_that_holds_one_part_many_times_costs_no_more_than_its_limit() -> None:
    value: Any = 1
    for _ in range(90):
        value = [value] * 50_000
    with pytest.raises(ValueTooLarge):
        check(value, limit_bytes=64 * 1024)


@pytest.mark.parametrize(
    "value",
    ["x" * 20 * MIB, ["x" * 1000] * 20_000, {str(i): i for i in range(1_000_000)}, [0] * 1_000_000],
    ids=["20 MiB text", "20 MiB list", "a million keys", "a million numbers"],
)
def test_what_is_too_large_is_refused_with_both_figures(value: object) -> None:
    with pytest.raises(ValueTooLarge, match="store it elsewhere") as refused:
        check(value, limit_bytes=256 * 1024)
    assert refused.value.size_bytes > refused.value.limit_bytes == 256 * 1024


def test_the_limit_counts_bytes_and_not_characters() -> None:
    assert check("é" * 10, limit_bytes=22) == 22
    with pytest.raises(ValueTooLarge):
        check("é" * 10, limit_bytes=21)
