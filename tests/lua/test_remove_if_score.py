"""remove_if_score.lua: a member leaves only while it has the score that was read."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import Lanes


def remove(lanes: Lanes, member: str, score: int | str) -> str:
    keys = (lanes.keys.timers,)
    return str(lanes.scripts.run("remove_if_score", keys=keys, args=(member, score)))


@pytest.fixture
def timers(lanes: Lanes) -> Lanes:
    lanes.client.zadd(lanes.keys.timers, {"wf_a": 253_402_300_799_123, "wf_b": 20})
    return lanes


def test_the_score_that_was_read_removes_the_member(timers: Lanes) -> None:
    assert remove(timers, "wf_a", 253_402_300_799_123) == "removed"
    assert timers.client.zrange(timers.keys.timers, 0, -1) == ["wf_b"]


@pytest.mark.parametrize("score", [253_402_300_799_122, 253_402_300_799_124])
def test_another_score_removes_nothing(timers: Lanes, score: int) -> None:
    assert remove(timers, "wf_a", score) == "changed"
    assert timers.client.zcard(timers.keys.timers) == 2


def test_a_repeat_finds_it_absent(timers: Lanes) -> None:
    remove(timers, "wf_b", 20)
    assert remove(timers, "wf_b", 20) == "absent"


def test_the_last_member_leaves_no_key(timers: Lanes, key_prefix: str) -> None:
    remove(timers, "wf_a", 253_402_300_799_123)
    remove(timers, "wf_b", 20)
    assert timers.client.keys(f"{key_prefix}:*") == []


def test_a_bad_score_is_refused_and_removes_nothing(timers: Lanes) -> None:
    with pytest.raises(ResponseError, match="remove_if_score"):
        remove(timers, "wf_a", "x")
    assert timers.client.zcard(timers.keys.timers) == 2
