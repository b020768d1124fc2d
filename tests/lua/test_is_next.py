"""is_next.lua: whether a candidate would overtake anybody."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes


def is_next(lanes: Lanes, lane: int | str, at: int | str, offset: int | str = 0) -> int:
    args = (offset, lane, at)
    return int(lanes.scripts.run("is_next", keys=lanes.keys.lanes, args=args))


def test_in_empty_lanes_anybody_is_next(lanes: Lanes) -> None:
    assert [is_next(lanes, lane, 100) for lane in range(4)] == [1, 1, 1, 1]


def test_in_its_own_lane_only_who_has_waited_longer_comes_before(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, 100)
    assert [is_next(lanes, 1, at) for at in (99, 100, 101)] == [1, 1, 0]


@pytest.mark.parametrize("other", [0, 2, 3])
def test_whatever_is_due_in_another_lane_may_have_its_turn(lanes: Lanes, other: int) -> None:
    lanes.push("wf_a", other, 500)
    assert is_next(lanes, 1, 5) == 0


def test_the_future_comes_before_nobody_until_the_clock_reaches_it(lanes: Lanes) -> None:
    lanes.push("wf_a", 0, FUTURE)
    lanes.push("wf_b", 1, FUTURE)
    assert is_next(lanes, 1, FUTURE + 5) == 1
    assert is_next(lanes, 1, FUTURE + 5, offset=FUTURE) == 0


def test_looking_changes_nothing(lanes: Lanes, key_prefix: str) -> None:
    lanes.push("wf_a", 1, 5)
    assert is_next(lanes, 1, 9) == is_next(lanes, 1, 9) == 0
    assert lanes.standing() == {"wf_a": [(1, 5)]}
    assert lanes.client.keys(f"{key_prefix}:*") == [lanes.keys.lanes[1]]


@pytest.mark.parametrize(
    ("lane", "at", "offset"), [(1, 5, "x"), (4, 5, 0), ("x", 5, 0), (1, "x", 0)]
)
def test_bad_arguments_are_refused(
    lanes: Lanes, lane: int | str, at: int | str, offset: int | str
) -> None:
    with pytest.raises(ResponseError, match="is_next"):
        is_next(lanes, lane, at, offset)
