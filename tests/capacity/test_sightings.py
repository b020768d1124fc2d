"""What a process saw of a resource is believed for a moment, and only to ask less."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kernel.engine import sightings
from kernel.engine.sightings import Sightings
from kernel.protocol.resources import Held, PermitOwner, ResourceState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HELD = Held(owner=PermitOwner("wf", "a", "t"), since=NOW, expires=NOW + timedelta(seconds=9))


def state(**values: Any) -> ResourceState:
    return ResourceState(name="psp", now=NOW, **values)


FULL = state(line=1, max_concurrency=1, holders=(HELD,))


def test_nothing_is_believed_of_what_was_never_seen() -> None:
    seen = Sightings()
    assert not seen.has_line("psp")
    assert not seen.has_room("psp")
    assert seen.full("psp") is None
    assert not seen.has_long_line("psp")


def test_a_full_resource_with_a_line_is_told() -> None:
    seen = Sightings()
    seen.note(FULL)
    assert seen.full("psp") == FULL
    assert seen.has_line("psp")
    assert not seen.has_room("psp")


def test_one_that_is_full_without_a_line_or_has_a_place_refuses_nobody() -> None:
    seen = Sightings()
    seen.note(state(line=0, max_concurrency=1, holders=(HELD,)))
    assert seen.full("psp") is None
    seen.note(state(line=1, max_concurrency=2, holders=(HELD,)))
    assert seen.full("psp") is None
    assert seen.has_line("psp")


@pytest.mark.parametrize(("most", "has_room"), [(None, True), (3, True), (2, False), (1, False)])
def test_there_is_room_where_less_than_half_is_held(most: int | None, has_room: bool) -> None:
    seen = Sightings()
    seen.note(state(max_concurrency=most, holders=(HELD,)))
    assert seen.has_room("psp") is has_room
    seen.note(FULL)
    assert not seen.has_room("psp")


@pytest.mark.parametrize(("queued", "is_long"), [(31, False), (32, True), (1000, True)])
def test_a_line_is_long_behind_which_nobody_is_next(queued: int, is_long: bool) -> None:
    seen = Sightings()
    seen.note(state(line=1, queued=queued))
    assert seen.has_long_line("psp") is is_long
    assert seen.has_long_line("psp", more=1)
    seen.note(state(line=0, queued=queued))
    assert not seen.has_long_line("psp")


def test_what_was_seen_long_ago_is_believed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Sightings()
    seen.note(state(line=1, queued=99, max_concurrency=1, holders=(HELD,)))
    monkeypatch.setattr(sightings, "_BELIEVED_SECONDS", -1.0)
    assert seen.full("psp") is None
    assert not seen.has_long_line("psp")
    assert seen.has_line("psp"), "a release asks who is next"
