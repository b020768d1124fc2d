"""note_claims.lua: leases are noted and forgotten, the answer says whether others are due."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import ResponseError

from kernel.hints.redis_hints import BELL_MS
from tests.lua.lanes import FUTURE, Lanes


def note(lanes: Lanes, member: str, at: int | str, offset: int | str = 0) -> str:
    args = (offset, BELL_MS, 1, member, at)
    return str(lanes.scripts.run("note_claims", keys=_keys(lanes), args=args))


def _keys(lanes: Lanes) -> tuple[str, ...]:
    return (*lanes.keys.lanes, lanes.keys.leases, lanes.keys.bell)


def test_an_idle_queue_keeps_the_lease_only(lanes: Lanes) -> None:
    assert note(lanes, "wf_a|tok", 50) == "idle"
    assert lanes.client.zscore(lanes.keys.leases, "wf_a|tok") == 50


@pytest.mark.parametrize("lane", [0, 1, 2, 3])
def test_the_claimed_leaves_its_lane_and_its_neighbours_stay(lanes: Lanes, lane: int) -> None:
    lanes.push("wf_a", lane, 1)
    lanes.push("wf_ab", lane, 1)
    lanes.client.zadd(lanes.keys.lanes[3 - lane], {"wf_a": 1})
    assert note(lanes, "wf_a|tok", 50) == "ring"
    assert lanes.standing() == {"wf_ab": [(lane, 1)]}


@pytest.mark.parametrize("lane", [0, 1, 2, 3])
def test_a_due_member_of_any_lane_is_told(lanes: Lanes, lane: int) -> None:
    lanes.push("wf_b", lane, 1)
    assert note(lanes, "wf_a|tok", 50) == "ring"
    assert 0 < lanes.client.pttl(lanes.keys.bell) <= BELL_MS


def test_a_bell_that_rings_is_left_ringing(lanes: Lanes) -> None:
    lanes.push("wf_b", 1, 1)
    lanes.client.set(lanes.keys.bell, "1", px=100 * BELL_MS)
    assert note(lanes, "wf_a|tok", 50) == "due"
    assert lanes.client.pttl(lanes.keys.bell) > BELL_MS


def test_a_future_member_is_not_due_until_its_time(lanes: Lanes) -> None:
    lanes.push("wf_b", 1, FUTURE)
    assert note(lanes, "wf_a|tok", 50) == "idle"
    assert lanes.client.exists(lanes.keys.bell) == 0
    assert note(lanes, "wf_a|tok", 50, offset=FUTURE) == "ring"


def test_the_later_end_of_a_lease_stays_on_repeat(lanes: Lanes) -> None:
    for at in (50, 40, 60, 50):
        note(lanes, "wf_a|tok", at)
    assert lanes.client.zscore(lanes.keys.leases, "wf_a|tok") == 60


@pytest.mark.parametrize(("at", "offset"), [("soon", 0), (50, "later")])
def test_a_bad_time_is_refused_and_leaves_no_key(
    lanes: Lanes, key_prefix: str, at: int | str, offset: int | str
) -> None:
    with pytest.raises(ResponseError, match="note_claims"):
        note(lanes, "wf_a|tok", at, offset)
    assert lanes.client.keys(f"{key_prefix}:*") == []


def test_several_are_noted_and_others_forgotten_in_one_run(lanes: Lanes) -> None:
    for member in ("wf_x|old", "wf_y|old", "wf_z|kept"):
        note(lanes, member, 40)
    args = (0, BELL_MS, 2, "wf_a|tok", 50, "wf_b|tok", 60, "wf_x|old", "wf_y|old", "wf_never|seen")
    assert lanes.scripts.run("note_claims", keys=_keys(lanes), args=args) == "idle"
    standing: Any = lanes.client.zrange(lanes.keys.leases, 0, -1, withscores=True)
    assert dict(standing) == {"wf_a|tok": 50, "wf_b|tok": 60, "wf_z|kept": 40}
