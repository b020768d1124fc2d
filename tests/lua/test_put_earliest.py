"""put_earliest.lua: of two times the earlier one stays."""

from __future__ import annotations

import itertools

import pytest
from redis.exceptions import ResponseError

from tests.lua.lanes import Lanes


def put(lanes: Lanes, member: str, at: int | str) -> str:
    return str(lanes.scripts.run("put_earliest", keys=(lanes.keys.timers,), args=(member, at)))


def score(lanes: Lanes, member: str) -> float | None:
    found = lanes.client.zscore(lanes.keys.timers, member)
    assert found is None or isinstance(found, float)
    return found


def test_a_new_member_is_added(lanes: Lanes) -> None:
    assert put(lanes, "wf_a", 50) == "added"
    assert score(lanes, "wf_a") == 50


@pytest.mark.parametrize(
    ("at", "word", "end"), [(40, "earlier", 40), (50, "kept", 50), (60, "kept", 50)]
)
def test_only_an_earlier_time_changes_a_member(lanes: Lanes, at: int, word: str, end: int) -> None:
    put(lanes, "wf_a", 50)
    assert put(lanes, "wf_a", at) == word
    assert score(lanes, "wf_a") == end


def test_the_order_of_puts_does_not_matter(lanes: Lanes) -> None:
    for number, order in enumerate(itertools.permutations([30, 10, 20])):
        for at in order:
            put(lanes, f"wf_{number}", at)
        assert score(lanes, f"wf_{number}") == 10


def test_a_bad_time_is_refused_and_leaves_no_key(lanes: Lanes, key_prefix: str) -> None:
    with pytest.raises(ResponseError, match="float"):
        put(lanes, "wf_a", "soon")
    assert lanes.client.keys(f"{key_prefix}:*") == []
