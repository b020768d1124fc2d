"""peek_due.lua: due members are shown in order, bounded, and stay."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes


def peek(lanes: Lanes, limit: int | str, offset: int | str = 0) -> list[str]:
    return list(lanes.scripts.run("peek_due", keys=(lanes.keys.timers,), args=(offset, limit)))


@pytest.fixture
def timers(lanes: Lanes) -> Lanes:
    lanes.client.zadd(lanes.keys.timers, {"wf_c": 30, "wf_a": 10, "wf_b": 20, "wf_d": FUTURE})
    return lanes


def test_an_empty_set_shows_nothing(lanes: Lanes) -> None:
    assert peek(lanes, 5) == []


def test_due_members_are_shown_earliest_first(timers: Lanes) -> None:
    assert peek(timers, 10) == ["wf_a", "10", "wf_b", "20", "wf_c", "30"]


def test_the_limit_bounds_the_answer(timers: Lanes) -> None:
    assert peek(timers, 2) == ["wf_a", "10", "wf_b", "20"]


def test_the_offset_shifts_what_is_due(timers: Lanes) -> None:
    assert peek(timers, 10, offset=FUTURE)[-2:] == ["wf_d", str(FUTURE)]


def test_looking_takes_nothing(timers: Lanes) -> None:
    assert peek(timers, 2) == peek(timers, 2)
    assert timers.client.zcard(timers.keys.timers) == 4


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), ("x", 0), (5, "x")])
def test_bad_arguments_are_refused(timers: Lanes, limit: int | str, offset: int | str) -> None:
    with pytest.raises(ResponseError, match="peek_due"):
        peek(timers, limit, offset)
