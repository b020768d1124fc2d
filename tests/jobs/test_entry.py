"""What may be asked for, and how a refusal names its place."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.services.entry import METADATA_BYTES, Entry, check_entry
from jobs.services.errors import InvalidRequest
from kernel.errors import InvalidValue, ValueTooLarge

SOUND: dict[str, Any] = {
    "tenant": "acme",
    "kind": "article",
    "source_url": "https://example.org/a",
    "options": None,
    "metadata": None,
}


def check(**changes: Any) -> Entry:
    return check_entry(**(SOUND | changes))


def pointers(**changes: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        check(**changes)
    return [problem.pointer for problem in caught.value.problems]


def test_defaults_are_filled_in_and_frozen() -> None:
    entry = check()
    assert entry.options == {"max_sentences": 5, "language": None}
    assert entry.metadata == {}


@pytest.mark.parametrize(
    "url",
    [
        "",
        None,
        7,
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "https://example.org/a b",
        "https://example.org/\x00",
        "https://example.org/\ud800",
        "https://example.org/" + "a" * 2048,
    ],
)
def test_address_that_is_no_web_address_is_refused(url: object) -> None:
    assert pointers(source_url=url) == ["/source_url"]


@pytest.mark.parametrize("url", ["http://a", "HTTPS://Example.org:8443/x?y#z", "http://bücher.de/"])
def test_web_address_is_kept_as_given(url: str) -> None:
    assert check(source_url=url).source_url == url


@pytest.mark.parametrize("count", [0, 21, True, 3.0, "3", None])
def test_sentence_count_outside_its_bounds_is_refused(count: object) -> None:
    assert pointers(options={"max_sentences": count}) == ["/options/max_sentences"]


def test_every_problem_is_named_at_once() -> None:
    assert pointers(
        kind="film", source_url="x", options={"language": "no language!", "extra": 1}
    ) == ["/kind", "/source_url", "/options/extra", "/options/language"]


@pytest.mark.parametrize("options", [[], "x", 3])
def test_options_that_are_no_object_are_refused(options: object) -> None:
    assert pointers(options=options) == ["/options"]


@pytest.mark.parametrize("metadata", [[], "x", 3])
def test_metadata_that_is_no_object_is_refused(metadata: object) -> None:
    assert pointers(metadata=metadata) == ["/metadata"]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, 2**64, "\ud800", {"a\x00": 1}, {"\udfff": 1}, nested(200)]
)
def test_metadata_that_cannot_be_kept_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"\$\.metadata"):
        check(metadata={"x": value})


def test_metadata_over_the_size_limit_is_refused() -> None:
    with pytest.raises(ValueTooLarge):
        check(metadata={"x": "y" * METADATA_BYTES})


@given(value=st.dictionaries(st.text(), st.text() | st.integers() | st.floats()))
def test_any_object_is_kept_equal_or_refused_with_a_typed_error(value: dict[str, Any]) -> None:
    try:
        kept = check(metadata=value).metadata
    except InvalidValue:
        return
    assert kept == value


WAV = "https://example.org/a.wav"


@pytest.mark.parametrize(
    ("kind", "source_url", "options"),
    [
        ("audio", WAV, {}),
        ("live", "", {"live_event": "live_1"}),
        ("digest", "https://example.org/", {"audio_url": WAV}),
        ("digest", "https://example.org/", {"live_event": "live_1"}),
    ],
)
def test_each_kind_says_where_its_recording_is(
    kind: str, source_url: str, options: dict[str, str]
) -> None:
    entry = check(kind=kind, source_url=source_url, options=options)
    assert entry.options == {"max_sentences": 5, "language": None, **options}


@pytest.mark.parametrize(
    ("kind", "source_url", "options", "pointer"),
    [
        ("live", WAV, {"live_event": "live_1"}, "/source_url"),
        ("live", "", {}, "/options/live_event"),
        ("live", "", {"live_event": 7}, "/options/live_event"),
        ("live", "", {"live_event": "x" * 41}, "/options/live_event"),
        ("digest", "https://example.org/", {}, "/options/audio_url"),
        ("digest", "https://example.org/", {"audio_url": "a.wav"}, "/options/audio_url"),
        ("article", "https://example.org/", {"live_event": "live_1"}, "/options/live_event"),
        ("audio", WAV, {"audio_url": WAV}, "/options/audio_url"),
    ],
)
def test_a_recording_that_is_missing_or_misplaced_is_named(
    kind: str, source_url: str, options: dict[str, Any], pointer: str
) -> None:
    assert pointers(kind=kind, source_url=source_url, options=options) == [pointer]
