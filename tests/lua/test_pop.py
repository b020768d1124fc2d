"""pop.lua: exact shares, no starvation, the burst as written, and the future left alone."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import FUTURE, Lanes

FULL = {0: 8, 1: 6, 2: 4, 3: 2}


def test_an_empty_queue_gives_nothing(lanes: Lanes) -> None:
    assert lanes.pop() is None


def test_a_popped_member_stands_nowhere(lanes: Lanes) -> None:
    lanes.push("wf_a", 1, 700)
    assert lanes.pop() == ("wf_a", 1, 700)
    assert lanes.standing() == {}
    assert lanes.pop() is None


def test_the_oldest_of_a_lane_goes_first(lanes: Lanes) -> None:
    for member, at in [("wf_a", 30), ("wf_b", 10), ("wf_c", 20)]:
        lanes.push(member, 1, at)
    assert [lanes.pop() for _ in range(3)] == [("wf_b", 1, 10), ("wf_c", 1, 20), ("wf_a", 1, 30)]


def test_full_lanes_share_exactly_8_6_4_2_over_ten_thousand_pops(lanes: Lanes) -> None:
    for lane in range(4):
        lanes.fill(lane, 4_100)
    served = lanes.popped_lanes(10_000)
    assert Counter(served) == {0: 4_000, 1: 3_000, 2: 2_000, 3: 1_000}
    for start in range(len(served) - 19):
        assert Counter(served[start : start + 20]) == FULL


@pytest.mark.parametrize("start", range(20))
def test_shares_are_exact_wherever_the_rotation_stands(lanes: Lanes, start: int) -> None:
    for lane in range(4):
        lanes.fill(lane, 20)
    lanes.client.hset(lanes.keys.rotation, "slot", str(start))
    assert Counter(lanes.popped_lanes(20)) == FULL


def test_the_lanes_are_interleaved(lanes: Lanes) -> None:
    for lane in range(4):
        lanes.fill(lane, 60)
    served = lanes.popped_lanes(100)
    gaps = {lane: _longest_gap(served, lane) for lane in range(4)}
    assert gaps == {0: 3, 1: 4, 2: 5, 3: 10}


def test_the_remaining_lanes_share_by_their_weights(lanes: Lanes) -> None:
    for lane in (1, 3):
        lanes.fill(lane, 100)
    served = lanes.popped_lanes(80)
    for start in range(0, 80, 8):
        assert Counter(served[start : start + 8]) == {1: 6, 3: 2}


def test_the_lowest_lane_alone_gets_everything(lanes: Lanes) -> None:
    lanes.fill(3, 50)
    assert lanes.popped_lanes(50) == [3] * 50


def test_the_lowest_lane_never_starves_while_the_others_are_refilled(lanes: Lanes) -> None:
    lanes.fill(3, 40)
    served = []
    for number in range(200):
        for lane in range(3):
            lanes.push(f"new.{lane}.{number}", lane, 1)
        served += lanes.popped_lanes(1)
    assert served.count(3) == 20
    assert _longest_gap(served, 3) == 10


def test_a_flickering_lane_does_not_cost_the_lowest_lane_its_turns(lanes: Lanes) -> None:
    lanes.fill(3, 200)
    served = []
    for number in range(100):
        if number % 2:
            lanes.push(f"new.{number}", 0, 1)
        served += lanes.popped_lanes(1)
    assert _longest_gap(served, 3) <= 20


def test_members_of_the_future_stay(lanes: Lanes) -> None:
    lanes.push("wf_later", 0, FUTURE)
    lanes.push("wf_now", 3, 1)
    assert lanes.pop() == ("wf_now", 3, 1)
    assert lanes.pop() is None
    assert lanes.standing() == {"wf_later": [(0, FUTURE)]}


def test_the_offset_shifts_what_is_due(lanes: Lanes) -> None:
    lanes.push("wf_later", 0, FUTURE)
    assert lanes.pop(offset=FUTURE) == ("wf_later", 0, FUTURE)


def test_nothing_due_arms_a_burst_of_eight_that_looks_at_p0_first(lanes: Lanes) -> None:
    assert lanes.pop() is None
    for lane in range(4):
        lanes.fill(lane, 60)
    assert lanes.popped_lanes(8) == [0] * 8
    assert Counter(lanes.popped_lanes(20)) == FULL


def test_a_burst_does_not_move_the_rotation(lanes: Lanes) -> None:
    for lane in range(4):
        lanes.fill(lane, 60)
    undisturbed = lanes.popped_lanes(20)
    lanes.client.delete(lanes.keys.rotation)
    lanes.client.hset(lanes.keys.rotation, mapping={"slot": "7", "burst": "8"})
    assert lanes.popped_lanes(8) == [0] * 8
    assert lanes.popped_lanes(20) == undisturbed[7:] + undisturbed[:7]


def test_a_burst_ends_for_good_when_p0_runs_dry(lanes: Lanes) -> None:
    assert lanes.pop() is None
    lanes.fill(0, 2)
    lanes.fill(1, 60)
    lanes.fill(2, 60)
    lanes.fill(3, 60)
    lanes.client.hset(lanes.keys.rotation, "slot", "1")
    assert lanes.popped_lanes(3) == [0, 0, 1]
    lanes.fill(0, 60)
    assert Counter(lanes.popped_lanes(20)) == FULL


def test_a_due_p0_member_of_the_future_does_not_keep_a_burst_alive(lanes: Lanes) -> None:
    lanes.push("wf_later", 0, FUTURE)
    assert lanes.pop() is None
    lanes.fill(1, 5)
    assert lanes.popped_lanes(1) == [1]
    assert lanes.client.hget(lanes.keys.rotation, "burst") == "0"


def test_every_empty_pop_arms_the_burst_anew(lanes: Lanes) -> None:
    assert lanes.pop() is None
    lanes.fill(0, 5)
    lanes.popped_lanes(5)
    assert lanes.pop() is None
    assert lanes.client.hget(lanes.keys.rotation, "burst") == "8"


@pytest.mark.parametrize("slot", ["-3", "99", "2.7", "nonsense", "1e30"])
def test_a_spoilt_rotation_only_costs_its_place(lanes: Lanes, slot: str) -> None:
    for lane in range(4):
        lanes.fill(lane, 60)
    lanes.client.hset(lanes.keys.rotation, mapping={"slot": slot, "burst": "nonsense"})
    assert Counter(lanes.popped_lanes(20)) == FULL


@pytest.mark.parametrize("groups", [[7, 1, 20, 32], [60], [3] * 20])
def test_groups_take_the_same_members_as_that_many_single_runs(
    lanes: Lanes, groups: list[int]
) -> None:
    def filled() -> None:
        lanes.client.delete(*lanes.keys.lanes, lanes.keys.rotation)
        for lane, members in enumerate((3, 25, 10, 12)):
            lanes.fill(lane, members)

    filled()
    singly = [lanes.pop() for _ in range(sum(groups))]
    rotation = lanes.client.hgetall(lanes.keys.rotation)
    filled()
    grouped = [taken for count in groups for taken in lanes.pop_group(count)]
    assert grouped == [taken for taken in singly if taken is not None]
    assert lanes.client.hgetall(lanes.keys.rotation) == rotation


@pytest.mark.parametrize(("offset", "count"), [("x", 1), (0, "x"), (0, 0), (0, -1)])
def test_bad_arguments_are_refused_and_take_nothing(
    lanes: Lanes, offset: int | str, count: int | str
) -> None:
    lanes.push("wf_a", 1, 1)
    keys = (*lanes.keys.lanes, lanes.keys.rotation)
    with pytest.raises(ResponseError, match=r"pop: ARGV"):
        lanes.scripts.run("pop", keys=keys, args=(offset, count))
    assert lanes.standing() == {"wf_a": [(1, 1)]}


def test_only_the_rotation_is_left_behind(lanes: Lanes, key_prefix: str) -> None:
    lanes.fill(2, 3)
    lanes.popped_lanes(3)
    assert lanes.pop() is None
    assert lanes.client.keys(f"{key_prefix}:*") == [lanes.keys.rotation]
    assert set(lanes.client.hkeys(lanes.keys.rotation)) == {"slot", "burst"}


def _longest_gap(served: list[int], lane: int) -> int:
    turns = [turn for turn, candidate in enumerate(served) if candidate == lane]
    return max(later - earlier for earlier, later in itertools.pairwise(turns))
