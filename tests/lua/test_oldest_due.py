"""oldest_due.lua: the earliest due time of all lanes."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes


def oldest(lanes: Lanes, offset: int | str = 0) -> int | None:
    score = lanes.scripts.run("oldest_due", keys=lanes.keys.lanes, args=(offset,))
    return None if score is None else int(float(score))


def test_empty_lanes_have_none(lanes: Lanes) -> None:
    assert oldest(lanes) is None


def test_the_earliest_of_all_lanes_is_told(lanes: Lanes) -> None:
    for member, lane, at in [("wf_a", 0, 900), ("wf_b", 2, 90), ("wf_c", 3, 1_000)]:
        lanes.push(member, lane, at)
    assert oldest(lanes) == 90


def test_the_future_does_not_count_until_the_clock_reaches_it(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, FUTURE)
    assert oldest(lanes) is None
    assert oldest(lanes, offset=FUTURE) == FUTURE


def test_looking_changes_nothing(lanes: Lanes, key_prefix: str) -> None:
    lanes.push("wf_a", 1, 5)
    assert oldest(lanes) == oldest(lanes) == 5
    assert lanes.standing() == {"wf_a": [(1, 5)]}
    assert lanes.client.keys(f"{key_prefix}:*") == [lanes.keys.lanes[1]]


def test_a_bad_offset_is_refused(lanes: Lanes) -> None:
    with pytest.raises(ResponseError, match="oldest_due"):
        oldest(lanes, offset="x")
