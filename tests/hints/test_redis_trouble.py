"""RedisHints when Redis is away, hung, restarted, demoted, full, spoilt, or one of a cluster."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import RedisServer
from kernel.errors import HintsUnavailable
from kernel.hints import RedisHints
from kernel.hints.breaker import Breaker
from kernel.hints.keys import Keys
from tests.hints.own_server import ClusterServer, admin, every_call, hung, seconds
from tests.kit.waiting import eventually

#: Connect and read timeout together, and what a busy test machine adds.
BOUND_SECONDS = 0.25 + 0.5 + 1.0


class Clock:
    """Monotonic seconds the test moves by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hints(server: RedisServer, clock: Clock) -> Iterator[RedisHints]:
    hints = RedisHints(server.url, key_prefix="t", breaker=Breaker(clock=clock))
    yield hints
    hints.close()


def fail(hints: RedisHints) -> None:
    with pytest.raises(HintsUnavailable):
        hints.pop("q")


def fail_often(hints: RedisHints) -> None:
    for _ in range(100):
        fail(hints)


def test_a_dead_redis_is_no_error_until_it_is_asked() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        hints = RedisHints(url, key_prefix="t")
        assert seconds(lambda: fail(hints)) < BOUND_SECONDS
        for call in every_call(hints):
            with pytest.raises(HintsUnavailable) as caught:
                call()
            assert caught.value.code == "hints_unavailable"
        hints.close()


def test_a_server_that_accepts_and_never_answers_costs_one_timeout(
    server: RedisServer, hints: RedisHints
) -> None:
    with hung(server):
        assert 0.3 < seconds(lambda: fail(hints)) < BOUND_SECONDS
        assert seconds(lambda: fail_often(hints)) < BOUND_SECONDS, "a hundred for one"


def test_a_server_that_hangs_under_open_connections_costs_one_timeout(
    server: RedisServer, hints: RedisHints, clock: Clock
) -> None:
    hints.set_marker()
    with hung(server):
        assert seconds(lambda: fail(hints)) < BOUND_SECONDS
        clock.now += 1
        assert seconds(lambda: fail(hints)) < BOUND_SECONDS
        assert seconds(lambda: fail_often(hints)) < BOUND_SECONDS, "a hundred for one"
    clock.now += 1.9
    fail(hints)
    clock.now += 0.1
    assert hints.pop("q") is None


def test_the_cause_of_the_trouble_is_attached(server: RedisServer, hints: RedisHints) -> None:
    server.stop()
    with pytest.raises(HintsUnavailable) as caught:
        hints.pop("q")
    assert caught.value.__cause__ is not None
    assert type(caught.value.__cause__).__name__ in str(caught.value)


def test_a_restart_between_two_calls_costs_no_failure(
    server: RedisServer, hints: RedisHints
) -> None:
    hints.push("q", "wf_a", priority=1, at_ms=5)
    server.kill()
    server.start()
    assert hints.pop("q") is None
    hints.push("q", "wf_a", priority=1, at_ms=5)
    assert hints.pop("q") == "wf_a"


def test_a_demoted_server_is_reported_and_asked_anew_after_its_return(
    server: RedisServer, hints: RedisHints, clock: Clock
) -> None:
    hints.push("q", "wf_a", priority=1, at_ms=5)
    with admin(server) as client:
        client.replicaof("127.0.0.1", "1")
        with pytest.raises(HintsUnavailable, match=r"(?i)read.?only"):
            hints.push("q", "wf_b", priority=1, at_ms=5)
        with pytest.raises(HintsUnavailable, match="next trial"):
            hints.pop("q")
        client.replicaof("NO", "ONE")
        connections = client.info("stats")["total_connections_received"]
        clock.now += 1
        assert hints.pop("q") == "wf_a"
        assert client.info("stats")["total_connections_received"] == connections + 1


def test_a_fault_of_the_caller_during_a_trial_does_not_lock_redis_out(
    server: RedisServer, clock: Clock
) -> None:
    def faulty_offset() -> int:
        raise LookupError("no offset")

    hints = RedisHints(
        server.url, key_prefix="t", breaker=Breaker(clock=clock), clock_offset_ms=faulty_offset
    )
    with hung(server), pytest.raises(HintsUnavailable):
        hints.set_marker()
    clock.now += 1
    with pytest.raises(LookupError, match="no offset"):
        hints.pop("q")
    hints.set_marker()
    assert hints.marker_present()
    hints.close()


def test_a_full_server_refuses_pushes_whole_and_still_gives_candidates(
    server: RedisServer, hints: RedisHints
) -> None:
    for number in range(4):
        hints.push("q", f"wf_{number}", priority=3, at_ms=5 + number)
    hints.put_timer("q", "wf_0", at_ms=5)
    with admin(server) as client:
        client.config_set("maxmemory", "1")
        client.config_set("maxmemory-policy", "noeviction")
        with pytest.raises(HintsUnavailable, match=r"(?i)memory"):
            hints.push("q", "wf_3", priority=0, at_ms=1)
        with pytest.raises(HintsUnavailable, match=r"(?i)memory"):
            hints.put_timer("q", "wf_1", at_ms=5)
        lanes = Keys("t").of("q").lanes
        assert [client.zscore(lane, "wf_3") for lane in lanes] == [None, None, None, 8]
        assert [hints.pop("q") for _ in range(3)] == ["wf_0", "wf_1", "wf_2"]
        assert hints.pop("idle") is None
        hints.drop_timer("q", "wf_0", score_ms=5)
        client.config_set("maxmemory", "0")
    assert hints.pop("q") == "wf_3"


def test_a_spoilt_key_fails_its_own_queue_only(server: RedisServer, hints: RedisHints) -> None:
    keys = Keys("t").of("q")
    with admin(server) as client:
        for key in (*keys.lanes, keys.rotation, keys.timers, keys.leases):
            client.set(key, "not a sorted set")
    spoilt = 0
    for call in every_call(hints):
        try:
            call()
        except HintsUnavailable:
            spoilt += 1
    assert spoilt == 15
    hints.push("other", "wf_a", priority=1, at_ms=5)
    assert hints.pop("other") == "wf_a"


def test_a_wrong_password_is_reported_without_a_driver_error(server: RedisServer) -> None:
    with admin(server) as client:
        client.config_set("requirepass", "secret")
        hints = RedisHints(server.url, key_prefix="t")
        fail(hints)
        hints.close()
        client.config_set("requirepass", "")


def test_text_that_cannot_be_sent_is_reported_as_unavailable(hints: RedisHints) -> None:
    with contextlib.suppress(HintsUnavailable):
        hints.push("q", "wf_\ud800", priority=1, at_ms=5)
    assert hints.marker_present() is False


def test_every_operation_keeps_to_one_slot_of_a_cluster(tmp_path: Path) -> None:
    server = ClusterServer(tmp_path / "cluster")
    server.start()
    try:
        with admin(server) as client:
            client.cluster("ADDSLOTS", *range(16_384))
            eventually(lambda: client.cluster("INFO")["cluster_state"] == "ok")
        hints = RedisHints(server.url, key_prefix="t")
        for call in every_call(hints):
            call()
        hints.close()
    finally:
        server.stop()
