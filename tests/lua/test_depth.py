"""depth.lua: due and delayed members of each lane."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes


def depth(lanes: Lanes, offset: int | str = 0) -> list[int | str]:
    return list(lanes.scripts.run("depth", keys=lanes.keys.lanes, args=(offset,)))


def test_empty_lanes_count_nothing(lanes: Lanes) -> None:
    assert depth(lanes) == [0, 0, ""] * 4


def test_due_and_delayed_members_are_told_apart(lanes: Lanes) -> None:
    lanes.push("wf_a", 0, FUTURE)
    lanes.push("wf_b", 2, 70)
    lanes.push("wf_c", 2, 60)
    lanes.push("wf_d", 2, FUTURE)
    assert depth(lanes) == [1, 0, "", 0, 0, "", 3, 2, "60", 0, 0, ""]


def test_the_offset_shifts_what_is_due(lanes: Lanes) -> None:
    lanes.push("wf_a", 3, FUTURE)
    assert depth(lanes, offset=FUTURE)[9:] == [1, 1, str(FUTURE)]


def test_looking_changes_nothing(lanes: Lanes, key_prefix: str) -> None:
    lanes.push("wf_a", 1, 5)
    assert depth(lanes) == depth(lanes)
    assert lanes.standing() == {"wf_a": [(1, 5)]}
    assert lanes.client.keys(f"{key_prefix}:*") == [lanes.keys.lanes[1]]


def test_a_bad_offset_is_refused(lanes: Lanes) -> None:
    with pytest.raises(ResponseError, match="depth"):
        depth(lanes, offset="x")
