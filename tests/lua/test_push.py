"""push.lua: one lane a member, and raise-only in both priority and time."""

from __future__ import annotations

import itertools

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes


def test_a_new_member_is_added_to_the_wanted_lane(lanes: Lanes) -> None:
    assert lanes.push("wf_a", 2, 700) == "added"
    assert lanes.standing() == {"wf_a": [(2, 700)]}


def test_a_repeated_push_changes_nothing(lanes: Lanes) -> None:
    lanes.push("wf_a", 2, 700)
    assert lanes.push("wf_a", 2, 700) == "kept"
    assert lanes.standing() == {"wf_a": [(2, 700)]}


@pytest.mark.parametrize(
    ("lane", "at", "word", "place"),
    [
        (3, 900, "kept", (2, 700)),
        (3, 500, "earlier", (2, 500)),
        (2, 900, "kept", (2, 700)),
        (2, 500, "earlier", (2, 500)),
        (0, 900, "moved", (0, 700)),
        (0, 700, "moved", (0, 700)),
        (0, 500, "moved", (0, 500)),
    ],
)
def test_a_second_push_only_raises(
    lanes: Lanes, lane: int, at: int, word: str, place: tuple[int, int]
) -> None:
    lanes.push("wf_a", 2, 700)
    assert lanes.push("wf_a", lane, at) == word
    assert lanes.standing() == {"wf_a": [place]}


def test_the_order_of_pushes_does_not_matter(lanes: Lanes) -> None:
    pushes = [(3, 100), (1, 900), (2, 500), (1, 300)]
    ends = set()
    for number, order in enumerate(itertools.permutations(pushes)):
        for lane, at in order:
            lanes.push(f"wf_{number}", lane, at)
        ends.add(tuple(lanes.standing()[f"wf_{number}"]))
    assert ends == {((1, 100),)}


def test_times_of_the_year_9999_keep_their_milliseconds(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, 253_402_300_799_123)
    lanes.push("wf_a", 0, 253_402_300_799_124)
    assert lanes.standing() == {"wf_a": [(0, 253_402_300_799_123)]}


def test_a_member_left_in_two_lanes_by_a_cut_run_is_mended(lanes: Lanes) -> None:
    lanes.client.zadd(lanes.keys.lanes[1], {"wf_a": 700})
    lanes.client.zadd(lanes.keys.lanes[3], {"wf_a": 200})
    assert lanes.push("wf_a", 2, FUTURE) == "earlier"
    assert lanes.standing() == {"wf_a": [(1, 200)]}


@pytest.mark.parametrize(
    ("lane", "at"), [("4", "1"), ("-1", "1"), ("1.5", "1"), ("x", "1"), ("1", "soon"), ("1", "nan")]
)
def test_bad_arguments_are_refused_and_write_nothing(lanes: Lanes, lane: str, at: str) -> None:
    with pytest.raises(ResponseError, match=r"push: ARGV\[[23]\] must be"):
        lanes.scripts.run("push", keys=lanes.keys.lanes, args=("wf_a", lane, at))
    assert lanes.standing() == {}


def test_no_key_but_the_lane_is_left_behind(lanes: Lanes, key_prefix: str) -> None:
    lanes.push("wf_a", 3, 700)
    lanes.push("wf_a", 1, 700)
    assert lanes.client.keys(f"{key_prefix}:*") == [lanes.keys.lanes[1]]
