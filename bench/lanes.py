"""Candidates a second that one process takes from full lanes, and what a pop costs from huge ones.

Guarantees that every candidate that was put in is taken out once. Leaves the size of the huge lanes
to `BATON_BENCH_LANE` (1,000,000 by default, 50,000 with --quick).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final

import redis

from bench.figure import Figure, median, percentile, spread
from bench.site import QUEUE, Site, fresh_database
from kernel.hints import RedisHints
from kernel.hints.keys import Keys

_FEW: Final = 1_000
_POPS: Final = 3_000
_BATCH: Final = 20_000


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
        ),
        _huge(site, quick=quick),
    ]


def _huge(site: Site, *, quick: bool) -> Figure:
    """Time single pops from lanes of a thousand and of very many, in turns."""
    many = int(os.environ.get("BATON_BENCH_LANE") or (50_000 if quick else 1_000_000))
    few = _FEW
    with fresh_database(site) as one, fresh_database(site) as other:
        lanes = [_filled(environment, count) for environment, count in ((one, few), (other, many))]
        times: list[list[float]] = [[], []]
        for number in range(_POPS):
            for hints, calls in zip(lanes, times, strict=True):
                begun = time.perf_counter()
                taken = hints.pop(QUEUE)
                calls.append((time.perf_counter() - begun) * 1000)
                if taken is None:
                    raise RuntimeError(f"nothing was due at pop {number}")
                # Put back behind the others, so that the lanes keep their size.
                hints.push(QUEUE, taken, priority=number % 4, at_ms=many + number)
        for hints in lanes:
            hints.close()
    return Figure(
        name=f"lane pop from {many:,} members, p50",
        value=percentile(times[1], 50),
        unit="ms",
        raw_name=f"from {few:,} members",
        raw=percentile(times[0], 50),
        aim="<= 1.3 x",
        note=f"p99 {percentile(times[1], 99):.3g} ms, {percentile(times[0], 99):.3g} ms beside few",
    )


def _filled(environment: Mapping[str, str], members: int) -> RedisHints:
    """Return the hints of lanes with so many members, all due."""
    lanes = Keys(environment["BATON_KEY_PREFIX"]).of(QUEUE).lanes
    with redis.Redis.from_url(environment["BATON_REDIS_URL"]) as client:
        for begin in range(0, members, _BATCH):
            batch = range(begin, min(begin + _BATCH, members))
            for lane, key in enumerate(lanes):
                some = {f"wf_{number:032d}": number for number in batch if number % 4 == lane}
                if some:
                    client.zadd(key, some)
    return RedisHints(environment["BATON_REDIS_URL"], key_prefix=environment["BATON_KEY_PREFIX"])


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
