"""Any sequence of pushes, pops and discards does what a tiny model in Python does."""

from __future__ import annotations

import itertools

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kernel.hints.keys import Keys
from kernel.hints.redis_hints import BELL_MS
from kernel.hints.scripts import Scripts
from tests.lua.lanes import Lanes

HOUR = 3_600_000
WEIGHTS = (8, 6, 4, 2)
MEMBERS = st.sampled_from([f"wf_{letter}" for letter in "abcdefgh"])


def slots() -> list[int]:
    """Spread the lanes over twenty slots: each turn, the lane furthest behind its share."""
    behind = [0] * len(WEIGHTS)
    order = []
    for _ in range(sum(WEIGHTS)):
        behind = [debt + weight for debt, weight in zip(behind, WEIGHTS, strict=True)]
        lane = behind.index(max(behind))
        behind[lane] -= sum(WEIGHTS)
        order.append(lane)
    return order


class LanesMachine(RuleBasedStateMachine):
    """Push, pop, discard, let hours pass, flush scripts; compare with the model each time.

    Times are half hours apart from the hours that pass, so the seconds a run takes never decide
    what is due.
    """

    numbers = itertools.count()
    client: redis.Redis
    key_prefix: str

    def __init__(self) -> None:
        super().__init__()
        keys = Keys(f"{self.key_prefix}:{next(self.numbers)}").of("content")
        self.lanes = Lanes(client=self.client, scripts=Scripts(self.client), keys=keys)
        self.start = int(self.client.time()[0]) * 1_000
        self.hours = 0
        self.places: dict[str, tuple[int, int]] = {}
        self.slot = 0
        self.burst = 0
        self.order = slots()

    @rule(member=MEMBERS, lane=st.integers(0, 3), hour=st.integers(-3, 3))
    def push(self, member: str, lane: int, hour: int) -> None:
        at = self.start + (self.hours + hour) * HOUR - HOUR // 2
        old = self.places.get(member)
        new = (lane, at) if old is None else (min(lane, old[0]), min(at, old[1]))
        if old is None:
            word = "added"
        elif new == old:
            word = "kept"
        else:
            word = "moved" if new[0] < old[0] else "earlier"
        self.places[member] = new
        assert self.lanes.push(member, lane, at) == word

    @rule()
    def pop(self) -> None:
        taken = self.lanes.pop(offset=self.hours * HOUR)
        assert taken == self._pop_in_the_model()

    @rule(member=MEMBERS)
    def note_a_claim(self, member: str) -> None:
        self.places.pop(member, None)
        keys = self.lanes.keys
        args = (0, BELL_MS, 1, f"{member}|token", 1)
        known = (*keys.lanes, keys.leases, keys.bell)
        assert self.lanes.scripts.run("note_claims", keys=known, args=args) in {
            "ring",
            "due",
            "idle",
        }

    @rule(hours=st.integers(1, 2))
    def let_time_pass(self, hours: int) -> None:
        self.hours += hours

    @rule()
    def flush_scripts(self) -> None:
        self.client.script_flush()

    @invariant()
    def every_member_stands_where_the_model_says(self) -> None:
        assert self.lanes.standing() == {member: [at] for member, at in self.places.items()}

    def teardown(self) -> None:
        keys = self.lanes.keys
        self.client.delete(*keys.lanes, keys.rotation, keys.leases, keys.bell)

    def _pop_in_the_model(self) -> tuple[str, int, int] | None:
        now = self.start + self.hours * HOUR
        due = sorted((at, m, lane) for m, (lane, at) in self.places.items() if at <= now)
        first = {lane: (m, lane, at) for at, m, lane in reversed(due)}
        if self.burst and 0 in first:
            self.burst -= 1
            chosen = first[0]
        else:
            self.burst = 0 if first else 8
            if not first:
                return None
            while self.order[self.slot] not in first:
                self.slot = (self.slot + 1) % len(self.order)
            chosen = first[self.order[self.slot]]
            self.slot = (self.slot + 1) % len(self.order)
        del self.places[chosen[0]]
        return chosen


def test_any_sequence_of_operations_matches_the_model(client: redis.Redis, key_prefix: str) -> None:
    machine = type("Machine", (LanesMachine,), {"client": client, "key_prefix": key_prefix})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
