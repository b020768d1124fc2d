"""What a Redis that is away adds to POST /jobs, measured through HTTP.

The web process has a Redis of its own for hints and wakeups, which is stopped (nothing listens) and
then held still (it takes connections and never answers). The first requests after that find it out
and open the breakers; the figures are of the requests after them, trials included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGCONT, SIGSTOP

import httpx

from bench.figure import Figure, percentile, shown
from bench.site import Site, fresh_database
from bench.web import WARM_UP, accepts, web_client
from config.embedded import RedisServer

#: Promised: a request waits no longer than this for a Redis that is away, milliseconds.
LIMIT_MS = 100.0
#: Longer than the longest pause between two trials, so that the figures hold some.
_SECONDS = 12.0


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Ask for jobs with Redis there, stopped and held still; compare."""
    samples = 50 if quick else 500
    with RedisServer(site.data_dir / "outage-redis") as server, fresh_database(site) as fresh:
        environment = {
            **fresh,
            "BATON_API_RATE": "off",
            "BATON_REDIS_URL": server.url,
            "BATON_BROKER_URL": server.url,
        }
        with web_client(environment) as client:
            there = accepts(client, samples)
            figures: list[Figure] = []
            for how, away in (("stopped", _stopped), ("held still", _held_still)):
                with away(server):
                    accepts(client, 1)
                    gone = _for_a_while(client, samples, 0.0 if quick else _SECONDS)
                accepts(client, WARM_UP)
                figures += _compared(how, there, gone)
    return figures


def _compared(how: str, there: list[float], gone: list[float]) -> Iterator[Figure]:
    for percent in (50, 99):
        before, during = percentile(there, percent), percentile(gone, percent)
        yield Figure(
            name=f"API accept, added by a Redis {how}, p{percent}",
            value=during - before,
            unit="ms",
            raw_name="the limit",
            raw=LIMIT_MS,
            aim="<= 100 ms",
            note=f"{shown(before)} ms with Redis, {shown(during)} ms without;"
            f" {len(gone)} samples, longest {shown(max(gone))} ms",
        )


def _for_a_while(client: httpx.Client, samples: int, seconds: float) -> list[float]:
    """Ask at least so often and for at least so long."""
    taken: list[float] = []
    until = time.monotonic() + seconds
    while len(taken) < samples or time.monotonic() < until:
        taken += accepts(client, 10, warm_up=0)
    return taken


@contextmanager
def _stopped(server: RedisServer) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


@contextmanager
def _held_still(server: RedisServer) -> Iterator[None]:
    os.kill(server.pid, SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, SIGCONT)
