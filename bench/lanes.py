"""Candidates a second that one process takes from full ready lanes."""

from __future__ import annotations

import time

import redis

from bench.figure import Figure, median, spread
from bench.site import QUEUE, Site, fresh_database
from kernel.hints import RedisHints


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Fill the four lanes, empty them by weighted pops; the raw limit is ZPOPMIN."""
    members, repeats = (2_000, 3) if quick else (20_000, 5)
    pops, raws = [], []
    for _ in range(repeats):
        with fresh_database(site) as environment:
            pops.append(
                _pops(environment["BATON_REDIS_URL"], environment["BATON_KEY_PREFIX"], members)
            )
            raws.append(
                _raw(environment["BATON_REDIS_URL"], environment["BATON_KEY_PREFIX"], members)
            )
    return [
        Figure(
            name="weighted lane pops, 1 connection",
            value=median(pops),
            unit="/s",
            raw_name="ZPOPMIN",
            raw=median(raws),
            note=f"{members} members; {spread(pops)}",
        )
    ]


def _pops(redis_url: str, key_prefix: str, members: int) -> float:
    hints = RedisHints(redis_url, key_prefix=key_prefix)
    for number in range(members):
        hints.push(QUEUE, f"wf_{number:032d}", priority=number % 4, at_ms=number)
    begun = time.perf_counter()
    taken = 0
    while hints.pop(QUEUE) is not None:
        taken += 1
    seconds = time.perf_counter() - begun
    hints.close()
    if taken != members:
        raise RuntimeError(f"{taken} of {members} candidates were popped")
    return taken / seconds


def _raw(redis_url: str, key_prefix: str, members: int) -> float:
    with redis.Redis.from_url(redis_url) as client:
        key = f"{key_prefix}:raw"
        client.zadd(key, {f"wf_{number:032d}": number for number in range(members)})
        begun = time.perf_counter()
        for _ in range(members):
            client.zpopmin(key)
        return members / (time.perf_counter() - begun)
