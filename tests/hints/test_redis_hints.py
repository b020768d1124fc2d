"""RedisHints: what the engine sees through the port, on a healthy Redis."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import redis

from kernel.errors import UsageError
from kernel.hints import Candidate, Hints, LaneDepth, RedisHints
from kernel.hints.keys import Keys
from tests.hints.conftest import Offset
from tests.hints.own_server import every_call

FUTURE = 4_102_444_800_000


def test_it_is_the_port(hints: RedisHints) -> None:
    port: Hints = hints
    assert port.pop("q") is None


def test_a_pushed_workflow_is_popped_once(hints: RedisHints) -> None:
    hints.push("q", "wf_a", priority=1, at_ms=5)
    assert hints.has_due("q")
    assert hints.oldest_due_ms("q") == 5
    assert hints.pop("q") == "wf_a"
    assert hints.pop("q") is None
    assert not hints.has_due("q")
    assert hints.oldest_due_ms("q") is None


def test_queues_do_not_see_each_other(hints: RedisHints) -> None:
    hints.push("content", "wf_a", priority=1, at_ms=5)
    hints.put_timer("content", "wf_b", at_ms=5)
    assert hints.pop("media") is None
    assert hints.due_timers("media", limit=5) == []
    assert hints.ring("content")
    assert hints.ring("media")


def test_deployments_with_other_prefixes_do_not_see_each_other(
    hints: RedisHints, redis_url: str, key_prefix: str
) -> None:
    other = RedisHints(redis_url, key_prefix=f"{key_prefix}-staging")
    hints.push("q", "wf_a", priority=1, at_ms=5)
    hints.set_marker()
    assert other.pop("q") is None
    assert not other.marker_present()
    other.close()


def test_the_clock_offset_decides_what_is_due(hints: RedisHints, offset: Offset) -> None:
    hints.push("q", "wf_a", priority=1, at_ms=FUTURE)
    hints.put_timer("q", "wf_b", at_ms=FUTURE)
    hints.put_lease("q", "wf_c", "tok", expires_ms=FUTURE)
    assert hints.due_timers("q", limit=5) == []
    assert hints.due_leases("q", limit=5) == []
    assert hints.pop("q") is None
    offset.ms = FUTURE
    assert hints.due_timers("q", limit=5) == [("wf_b", FUTURE)]
    assert hints.due_leases("q", limit=5) == [("wf_c", "tok", FUTURE)]
    assert hints.pop("q") == "wf_a"


def test_depth_tells_ready_and_delayed_apart(hints: RedisHints) -> None:
    hints.push("q", "wf_a", priority=2, at_ms=5)
    hints.push("q", "wf_b", priority=2, at_ms=FUTURE)
    empty = LaneDepth(total=0, ready=0, delayed=0, oldest_ms=None)
    full = LaneDepth(total=2, ready=1, delayed=1, oldest_ms=5)
    assert hints.depth("q") == {0: empty, 1: empty, 2: full, 3: empty}


def test_a_workflow_whose_claim_was_noted_stands_in_no_lane(hints: RedisHints) -> None:
    hints.push("q", "wf_a", priority=1, at_ms=5)
    hints.push("q", "wf_b", priority=1, at_ms=6)
    for _ in range(2):
        hints.note_claims("q", [("wf_a", "tok", 50)])
    assert hints.pop("q") == "wf_b"
    assert hints.pop("q") is None


def test_a_due_timer_stays_until_it_is_dropped_by_its_score(hints: RedisHints) -> None:
    hints.put_timer("q", "wf_a", at_ms=50)
    hints.put_timer("q", "wf_a", at_ms=40)
    hints.put_timer("q", "wf_a", at_ms=60)
    assert hints.due_timers("q", limit=5) == hints.due_timers("q", limit=5) == [("wf_a", 40)]
    hints.drop_timer("q", "wf_a", score_ms=50)
    assert hints.due_timers("q", limit=5) == [("wf_a", 40)]
    hints.drop_timer("q", "wf_a", score_ms=40)
    assert hints.due_timers("q", limit=5) == []


def test_a_timer_is_moved_later_by_dropping_what_was_read(hints: RedisHints) -> None:
    hints.put_timer("q", "wf_a", at_ms=40)
    hints.drop_timer("q", "wf_a", score_ms=40)
    hints.put_timer("q", "wf_a", at_ms=FUTURE)
    assert hints.due_timers("q", limit=5) == []


def test_due_timers_are_bounded_and_earliest_first(hints: RedisHints) -> None:
    for at in (30, 10, 20):
        hints.put_timer("q", f"wf_{at}", at_ms=at)
    assert hints.due_timers("q", limit=2) == [("wf_10", 10), ("wf_20", 20)]


def test_a_renewed_lease_is_due_only_at_its_new_end(hints: RedisHints) -> None:
    hints.put_lease("q", "wf_a", "tok", expires_ms=40)
    hints.put_lease("q", "wf_a", "tok", expires_ms=FUTURE)
    hints.put_lease("q", "wf_a", "tok", expires_ms=50)
    assert hints.due_leases("q", limit=5) == []


def test_the_lease_of_an_old_token_does_not_touch_the_new_one(hints: RedisHints) -> None:
    hints.put_lease("q", "wf_a", "new", expires_ms=90)
    hints.put_lease("q", "wf_a", "old", expires_ms=10)
    hints.drop_leases("q", [("wf_a", "old")])
    assert hints.due_leases("q", limit=5) == [("wf_a", "new", 90)]


def test_a_lease_is_dropped_by_its_score_or_by_its_holder(hints: RedisHints) -> None:
    hints.put_lease("q", "wf_a", "tok", expires_ms=40)
    hints.drop_lease("q", "wf_a", "tok", score_ms=39)
    assert hints.due_leases("q", limit=5) == [("wf_a", "tok", 40)]
    hints.drop_lease("q", "wf_a", "tok", score_ms=40)
    assert hints.due_leases("q", limit=5) == []
    hints.put_lease("q", "wf_a", "tok", expires_ms=40)
    hints.drop_leases("q", [("wf_a", "tok")])
    hints.drop_leases("q", [("wf_a", "tok")])
    assert hints.due_leases("q", limit=5) == []


def test_the_bell_lets_one_caller_through_until_it_is_cleared(hints: RedisHints) -> None:
    assert [hints.ring("q") for _ in range(3)] == [True, False, False]
    hints.clear_bell("q")
    assert [hints.ring("q") for _ in range(2)] == [True, False]


def test_tick_rings_a_bell_of_its_own(hints: RedisHints) -> None:
    assert hints.ring("q")
    assert [hints.ring_from_tick("q") for _ in range(2)] == [True, False]
    hints.clear_bell("q")
    assert not hints.ring_from_tick("q")


def test_bells_end_by_themselves(hints: RedisHints, client: redis.Redis, key_prefix: str) -> None:
    hints.ring("q")
    hints.ring_from_tick("q")
    keys = Keys(key_prefix).of("q")
    assert 1_000 < int(client.pttl(keys.bell)) <= 2_000
    assert 4_000 < int(client.pttl(keys.tickbell)) <= 5_000


def test_the_marker_is_missing_until_it_is_set(hints: RedisHints) -> None:
    assert not hints.marker_present()
    hints.set_marker()
    assert hints.marker_present()


def test_a_flush_loses_everything_and_breaks_nothing(
    hints: RedisHints, client: redis.Redis, key_prefix: str
) -> None:
    for call in every_call(hints):
        call()
        client.delete(*(client.keys(f"{key_prefix}:*") or ["nothing"]))
        client.script_flush()
    assert not hints.marker_present()
    assert hints.pop("q") is None


def test_threads_share_one_instance_and_no_candidate_is_given_twice(hints: RedisHints) -> None:
    for number in range(200):
        hints.push("q", f"wf_{number}", priority=number % 4, at_ms=5)
    popped: list[str] = []

    def pop_all() -> None:
        while (workflow_id := hints.pop("q")) is not None:
            popped.append(workflow_id)

    threads = [threading.Thread(target=pop_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert Counter(popped) == Counter(f"wf_{number}" for number in range(200))


def test_foreign_bytes_in_a_lane_do_not_hide_the_others(
    hints: RedisHints, client: redis.Redis, key_prefix: str
) -> None:
    client.zadd(Keys(key_prefix).of("q").timers, {b"\xff\xfe": 1})
    client.zadd(Keys(key_prefix).of("q").leases, {"no token": 1})
    hints.put_timer("q", "wf_a", at_ms=5)
    hints.put_lease("q", "wf_a", "tok", expires_ms=5)
    assert hints.due_timers("q", limit=5)[-1] == ("wf_a", 5)
    assert hints.due_leases("q", limit=5) == [("no token", "", 1), ("wf_a", "tok", 5)]


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "", "redis://h:port/0"])
def test_an_unusable_url_is_refused_with_advice(url: str) -> None:
    with pytest.raises(UsageError, match="write redis://"):
        RedisHints(url, key_prefix="t")


def test_closing_twice_is_harmless(hints: RedisHints) -> None:
    hints.set_marker()
    hints.close()
    hints.close()


def test_many_candidates_are_pushed_at_once_and_counted_once(
    hints: RedisHints, client: redis.Redis
) -> None:
    found = [Candidate(f"wf_{number}", number % 4, 5) for number in range(50)]
    hints.push("q", "wf_7", priority=0, at_ms=5)
    client.script_flush()
    assert hints.push_all("q", found) == 49
    assert hints.push_all("q", found) == 0
    assert sum(lane.total for lane in hints.depth("q").values()) == 50
    assert hints.push_all("q", []) == 0
