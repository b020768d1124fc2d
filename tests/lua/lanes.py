"""Work on one queue's keys with the bare scripts, in the words of their headers.

Times in these tests are small numbers (long past, so due) or FUTURE (never due in a test run),
so no test waits for a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis

from kernel.hints.keys import QueueKeys
from kernel.hints.scripts import Scripts

#: The year 2100, ms: due for nobody, unless a test shifts the clock.
FUTURE = 4_102_444_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The scripts over one queue's keys."""

    client: redis.Redis
    scripts: Scripts
    keys: QueueKeys

    def push(self, member: str, lane: int, at: int) -> str:
        """Run push.lua and return its word."""
        return str(self.scripts.run("push", keys=self.keys.lanes, args=(member, lane, at)))

    def fill(self, lane: int, count: int, at: int = 1) -> None:
        """Put `count` members named `<lane>.<number>` into a lane, in one command."""
        members = {f"{lane}.{number:06}": at for number in range(count)}
        self.client.zadd(self.keys.lanes[lane], members)

    def pop(self, offset: int = 0) -> tuple[str, int, int] | None:
        """Run pop.lua and return (member, lane, score)."""
        keys = (*self.keys.lanes, self.keys.rotation)
        taken = self.scripts.run("pop", keys=keys, args=(offset, 1))
        return (taken[0], taken[1], int(float(taken[2]))) if taken else None

    def pop_group(self, count: int) -> list[tuple[str, int, int]]:
        """Run pop.lua for several at once."""
        keys = (*self.keys.lanes, self.keys.rotation)
        flat = self.scripts.run("pop", keys=keys, args=(0, count))
        taken = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        return [(member, lane, int(float(score))) for member, lane, score in taken]

    def popped_lanes(self, count: int) -> list[int]:
        """Pop so often and return the lanes served, in order; every pop must find something."""
        served = []
        for _ in range(count):
            taken = self.pop()
            assert taken is not None
            served.append(taken[1])
        return served

    def standing(self) -> dict[str, list[tuple[int, int]]]:
        """Return where each member stands: {member: [(lane, score), ...]}."""
        places: dict[str, list[tuple[int, int]]] = {}
        for lane, key in enumerate(self.keys.lanes):
            members: list[Any] = list(self.client.zrange(key, 0, -1, withscores=True))
            for member, score in members:
                places.setdefault(member, []).append((lane, int(score)))
        return places
