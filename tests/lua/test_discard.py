"""discard.lua: a workflow leaves every lane."""

from __future__ import annotations

from tests.lua.lanes import Lanes


def discard(lanes: Lanes, member: str) -> str:
    return str(lanes.scripts.run("discard", keys=lanes.keys.lanes, args=(member,)))


def test_a_member_is_removed_and_its_neighbours_stay(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, 5)
    lanes.push("wf_b", 1, 6)
    assert discard(lanes, "wf_a") == "removed"
    assert lanes.standing() == {"wf_b": [(1, 6)]}


def test_a_repeat_finds_it_absent(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, 5)
    discard(lanes, "wf_a")
    assert discard(lanes, "wf_a") == "absent"


def test_a_member_left_in_two_lanes_leaves_both(lanes: Lanes) -> None:
    lanes.client.zadd(lanes.keys.lanes[0], {"wf_a": 1})
    lanes.client.zadd(lanes.keys.lanes[3], {"wf_a": 1})
    assert discard(lanes, "wf_a") == "removed"
    assert lanes.standing() == {}


def test_no_key_is_left_behind(lanes: Lanes, key_prefix: str) -> None:
    lanes.push("wf_a", 1, 5)
    discard(lanes, "wf_a")
    assert lanes.client.keys(f"{key_prefix}:*") == []
