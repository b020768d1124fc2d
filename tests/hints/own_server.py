"""A Redis of one test's own, to be hung, killed, filled up or demoted, and calls that use it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import redis

from config.embedded import RedisServer
from kernel.hints import Candidate, RedisHints


class ClusterServer(RedisServer):
    """One server that serves all slots of a cluster, and checks them."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, _port_for_a_cluster_member())

    def _command(self, port: int) -> Sequence[str]:
        return [*super()._command(port), "--cluster-enabled", "yes"]


@contextlib.contextmanager
def hung(server: RedisServer) -> Iterator[None]:
    """Hold the server still: its port accepts connections, but nothing answers."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


@contextlib.contextmanager
def admin(server: RedisServer) -> Iterator[redis.Redis]:
    """Give a plain client for the test's own commands."""
    client = redis.Redis.from_url(server.url, decode_responses=True, protocol=2)
    try:
        yield client
    finally:
        client.close()


def every_call(hints: RedisHints) -> list[Callable[[], object]]:
    """List one call of each operation of the port but `close`."""
    return [
        lambda: hints.push("q", "wf_a", priority=1, at_ms=5),
        lambda: hints.push_all("q", [Candidate("wf_a", 1, 5)]),
        lambda: hints.pop("q"),
        lambda: hints.has_due("q"),
        lambda: hints.oldest_due_ms("q"),
        lambda: hints.depth("q"),
        lambda: hints.put_timer("q", "wf_a", at_ms=5),
        lambda: hints.due_timers("q", limit=5),
        lambda: hints.drop_timer("q", "wf_a", score_ms=5),
        lambda: hints.put_lease("q", "wf_a", "tok", expires_ms=5),
        lambda: hints.pop_many("q", 3),
        lambda: hints.note_claims("q", [("wf_a", "tok", 5)]),
        lambda: hints.drop_leases("q", [("wf_a", "tok")]),
        lambda: hints.due_leases("q", limit=5),
        lambda: hints.drop_lease("q", "wf_a", "tok", score_ms=5),
        lambda: hints.ring("q"),
        lambda: hints.clear_bell("q"),
        lambda: hints.ring_from_tick("q"),
        hints.set_marker,
        hints.marker_present,
    ]


def seconds(call: Callable[[], object]) -> float:
    """Measure one call on the monotonic clock."""
    start = time.monotonic()
    call()
    return time.monotonic() - start


def _port_for_a_cluster_member() -> int:
    """Choose a free port whose bus port, 10,000 above it, exists and is free too."""
    while True:
        port = random.randrange(10_000, 30_000)
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", port)),
            socket.create_server(("127.0.0.1", port + 10_000)),
        ):
            return port
