"""The resource document: every update is atomic, for groups, and on the database's clock."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from kernel.errors import RevisionConflict
from kernel.protocol.resources import PermitOwner
from kernel.store import (
    CapacityStore,
    Connection,
    Leaving,
    PermitGroups,
    StoreClock,
    ensure_schema,
    permit_groups,
)

LEASE_MS = 10_000
R = "psp"


@pytest.fixture
def clock() -> StoreClock:
    return StoreClock()


@pytest.fixture
def store(mongo_url: str, mongo_db_name: str, clock: StoreClock) -> Iterator[CapacityStore]:
    connection = Connection(mongo_url, database=mongo_db_name)
    ensure_schema(connection)
    yield CapacityStore(connection, clock)
    connection.close()


def owner(n: int, *, token: str | None = None, step: str | None = "s") -> PermitOwner:
    return PermitOwner(f"wf_{n}", step, token or f"token-{n}")


def limit(store: CapacityStore, **values: object) -> None:
    store.set_limits(R, values, by="t", reason="t", expires_ms=None, if_revision=None)


def granted(store: CapacityStore, *owners: PermitOwner) -> list[bool]:
    state = store.acquire(R, owners, lease_ms=LEASE_MS)
    return [state.holds(each) for each in owners]


def test_an_unlimited_resource_counts_its_holders(store: CapacityStore) -> None:
    assert granted(store, owner(1), owner(2)) == [True, True]
    state = store.read(R)
    assert (len(state.holders), state.granted, state.refused, state.line) == (2, 2, 0, 0)


def test_a_limit_set_later_counts_those_in_flight_and_lowering_ends_nobody(
    store: CapacityStore,
) -> None:
    granted(store, owner(1), owner(2))
    limit(store, max_concurrency=1)
    assert granted(store, owner(1), owner(3)) == [True, False]
    assert len(store.read(R).holders) == 2


def test_a_group_is_granted_in_order_and_acquiring_again_only_renews(store: CapacityStore) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(1), owner(2), owner(3)) == [True, True, False]
    assert granted(store, owner(1), owner(2)) == [True, True]
    state = store.read(R)
    assert (state.granted, state.refused) == (2, 1)


def test_a_new_claim_is_a_new_owner(store: CapacityStore) -> None:
    limit(store, max_concurrency=1)
    assert granted(store, owner(1)) == [True]
    assert granted(store, owner(1, token="later")) == [False]


def test_a_late_release_frees_nobody_elses_permit(store: CapacityStore, clock: StoreClock) -> None:
    limit(store, max_concurrency=1)
    granted(store, owner(1))
    clock.offset_ms += LEASE_MS + 1
    assert granted(store, owner(2)) == [True]
    store.release(R, [owner(1)])
    assert store.read(R).holds(owner(2))


def test_an_expired_permit_is_back_and_a_renewed_one_is_not(
    store: CapacityStore, clock: StoreClock
) -> None:
    limit(store, max_concurrency=1)
    granted(store, owner(1))
    clock.offset_ms += LEASE_MS - 1000
    store.renew(["token-1"], lease_ms=LEASE_MS)
    clock.offset_ms += LEASE_MS - 1000
    assert granted(store, owner(2)) == [False]
    clock.offset_ms += 2000
    store.clear_line(R, store.read(R).line)
    assert granted(store, owner(2)) == [True]


def test_renewing_keeps_no_permit_but_those_of_the_claims_named(
    store: CapacityStore, clock: StoreClock
) -> None:
    store.acquire(R, [owner(1), owner(2)], lease_ms=LEASE_MS)
    before = {held.owner: held.expires for held in store.read(R).holders}
    store.renew([owner(1).token], lease_ms=10 * LEASE_MS)
    after = {held.owner: held.expires for held in store.read(R).holders}
    assert after[owner(1)] > before[owner(1)]
    assert after[owner(2)] == before[owner(2)]


def test_while_the_line_is_set_only_a_reservation_is_granted(store: CapacityStore) -> None:
    limit(store, max_concurrency=1)
    assert granted(store, owner(1), owner(2)) == [True, False]
    store.release(R, [owner(1)])
    assert granted(store, owner(3)) == [False], "a newcomer overtook the line"
    assert store.reserve(R, ["wf_2", "wf_3"]).reserved == ("wf_2",)
    assert granted(store, owner(3), owner(2)) == [False, True]
    assert store.read(R).reserved == ()


def test_a_line_is_cleared_only_as_it_was_read(store: CapacityStore) -> None:
    limit(store, max_concurrency=1)
    granted(store, owner(1), owner(2))
    line = store.read(R).line
    granted(store, owner(3))
    assert not store.clear_line(R, line)
    assert store.clear_line(R, store.read(R).line)
    store.set_line(R)
    assert store.read(R).line > 0


def test_a_reservation_runs_out(store: CapacityStore, clock: StoreClock) -> None:
    limit(store, max_concurrency=1)
    assert store.reserve(R, ["wf_1"]).reserved == ("wf_1",)
    assert store.read(R).places() == 0
    clock.offset_ms += 5_001
    assert store.read(R).places() == 1


def test_leaving_and_coming_are_one_update(store: CapacityStore) -> None:
    limit(store, max_concurrency=1)
    granted(store, owner(1, step="a"))
    state = store.exchange(
        R,
        leaving=[Leaving(owner=owner(1, step="a"))],
        wanted=[owner(1, step="b")],
        lease_ms=LEASE_MS,
    )
    assert [held.owner.step for held in state.holders] == ["b"]


def passed(store: CapacityStore, *offers: list[PermitOwner], leaving: int = 0) -> list[str]:
    """Give permits back and pass them on; return the workflows that hold one then."""
    gone = [Leaving(owner=owner(leaving + n), then_pass=tuple(o)) for n, o in enumerate(offers)]
    state = store.exchange(R, leaving=gone, lease_ms=LEASE_MS)
    assert len(state.holders) + len(state.reserved) <= (state.max_concurrency or 99)
    return [held.owner.workflow_id for held in state.holders]


def test_a_permit_is_passed_to_the_first_in_line_who_has_no_place_yet(
    store: CapacityStore,
) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(0), owner(1), owner(2)) == [True, True, False]
    offers = [owner(2, token="a"), owner(3, token="b")], [owner(2, token="c"), owner(3, token="d")]
    assert passed(store, *offers) == ["wf_2", "wf_3"]
    state = store.read(R)
    assert [held.owner.token for held in state.holders] == ["a", "d"]
    assert (state.granted, state.refused, state.queued) == (4, 1, 0)
    assert state.line > 0, "the line is for a hand-on to clear"


def test_nothing_is_passed_on_beyond_the_limit_the_rate_or_a_pause(store: CapacityStore) -> None:
    limit(store, max_concurrency=1)
    assert granted(store, owner(0)) == [True]
    store.set_limits(
        R, {"max_starts_per_second": 1.0}, by="", reason="", expires_ms=None, if_revision=None
    )
    assert passed(store, [owner(5)]) == [], "its start would come too soon"
    limit(store, max_starts_per_second=None, max_concurrency=2)
    assert granted(store, owner(0), owner(1)) == [True, True]
    limit(store, max_concurrency=1)
    assert passed(store, [owner(5)]) == ["wf_1"], "the limit was lowered"
    store.set_paused(R, True, by="", reason="", if_revision=None)
    assert passed(store, [owner(5)], leaving=1) == []


def test_nothing_is_passed_on_beyond_the_places_kept_for_others(store: CapacityStore) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(0)) == [True]
    assert store.reserve(R, ["wf_8"]).reserved == ("wf_8",)
    limit(store, max_concurrency=1)
    assert passed(store, [owner(3)]) == []
    assert store.read(R).reserved == ("wf_8",)


def test_who_has_a_reservation_is_not_passed_to_and_its_place_stays(store: CapacityStore) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(0)) == [True]
    assert store.reserve(R, ["wf_2"]).reserved == ("wf_2",)
    assert passed(store, [owner(2), owner(3)]) == ["wf_3"]
    assert store.read(R).reserved == ("wf_2",)


def test_a_place_is_kept_for_nobody_who_was_handed_on_to_since_the_line_was_read(
    store: CapacityStore,
) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(0), owner(1)) == [True, True]
    following = Leaving(owner=owner(0), then_reserve=("wf_1", "wf_2"))
    left = store.exchange(R, leaving=[following], lease_ms=LEASE_MS)
    assert (left.reserved, left.handed) == (("wf_2",), ("wf_2",))
    limit(store, max_concurrency=9)
    assert store.reserve(R, ["wf_1", "wf_3"]).reserved == ("wf_2", "wf_3")
    sibling = store.reserve(R, ["wf_1"], for_waiters=False)
    assert "wf_1" in sibling.reserved, "another step of the same claim asks"


def test_passing_again_after_a_lost_answer_gives_nothing_twice(store: CapacityStore) -> None:
    limit(store, max_concurrency=2)
    assert granted(store, owner(0)) == [True]
    assert passed(store, [owner(2)]) == ["wf_2"]
    assert passed(store, [owner(2)]) == ["wf_2"]


def test_of_a_group_that_leaves_one_caller_makes_due_whoever_was_handed_a_place(
    store: CapacityStore,
) -> None:
    groups = PermitGroups(store, lease_ms=LEASE_MS)
    limit(store, max_concurrency=3)
    assert granted(store, owner(0), owner(1), owner(2)) == [True] * 3
    lines = [("wf_8",), ("wf_8", "wf_9"), ("wf_8", "wf_9")]
    leaving = [Leaving(owner=owner(n), then_reserve=line) for n, line in enumerate(lines)]
    states = groups._send(R, [permit_groups._Asked(leaving=each) for each in leaving])
    assert [state.handed for state in states] == [("wf_8",), ("wf_9",), ()]


def test_refusals_nobody_asked_for_are_counted_with_the_next_update(store: CapacityStore) -> None:
    groups = PermitGroups(store, lease_ms=LEASE_MS)
    limit(store, max_concurrency=1)
    assert groups.acquire(R, owner(0)).holds(owner(0))
    assert [groups.refuse(R), groups.refuse(R)] == [1, 2]
    state = groups.release(R, Leaving(owner=owner(0)))
    assert (state.refused, state.queued, state.line > 0) == (2, 2, True)
    assert groups.acquire(R, owner(1)).refused == 3


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 2.5, 7.0])
def test_no_window_holds_more_starts_than_its_rate(
    store: CapacityStore, clock: StoreClock, rate: float
) -> None:
    limit(store, max_starts_per_second=rate)
    chance = random.Random(int(rate * 10))
    starts = []
    for n in range(60):
        state = store.acquire(R, [owner(n)], lease_ms=LEASE_MS)
        if state.holds(owner(n)):
            starts.append(next(h.since for h in state.holders if h.owner == owner(n)))
        store.clear_line(R, store.read(R).line)
        clock.offset_ms += chance.choice([0, 1, 50, 200, 400])
    count = -(-rate // 1)
    window = timedelta(seconds=count / rate)
    assert len(starts) >= 3
    for first in starts:
        assert sum(first <= other <= first + window for other in starts) <= count


def test_a_start_that_was_not_used_is_given_back(store: CapacityStore) -> None:
    limit(store, max_starts_per_second=1.0)
    assert granted(store, owner(1)) == [True]
    store.exchange(R, leaving=[Leaving(owner=owner(1), unused=True)], lease_ms=LEASE_MS)
    assert granted(store, owner(2), owner(3)) == [True, False]
    store.release(R, [owner(2)])
    store.clear_line(R, store.read(R).line)
    assert granted(store, owner(4)) == [False], "ending a call does not give its start back"


def test_a_rate_set_later_knows_the_starts_before(store: CapacityStore) -> None:
    granted(store, owner(1), owner(2))
    limit(store, max_starts_per_second=2.0)
    assert granted(store, owner(3)) == [False]


def test_threads_never_hold_more_than_the_limit(store: CapacityStore) -> None:
    limit(store, max_concurrency=3)
    inside, most = 0, 0
    lock = threading.Lock()

    def work(n: int) -> int:
        nonlocal inside, most
        taken = 0
        for i in range(12):
            mine = owner(n * 100 + i)
            if not store.acquire(R, [mine], lease_ms=LEASE_MS).holds(mine):
                store.clear_line(R, store.read(R).line)
                continue
            with lock:
                inside += 1
                most = max(most, inside)
            taken += 1
            with lock:
                inside -= 1
            store.release(R, [mine])
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(work, range(8)))
    state = store.read(R)
    assert most <= 3
    assert (state.granted, state.granted + state.refused) == (taken, 96)
    assert state.holders == ()


def test_an_override_falls_back_to_what_held_before_it(
    store: CapacityStore, clock: StoreClock
) -> None:
    limit(store, max_concurrency=8, max_starts_per_second=2.0)
    store.set_limits(
        R, {"max_concurrency": 1}, by="ann", reason="night", expires_ms=60_000, if_revision=1
    )
    store.set_limits(
        R, {"max_concurrency": 2}, by="bob", reason="more", expires_ms=90_000, if_revision=2
    )
    state = store.read(R, with_history=True)
    assert (state.max_concurrency, state.max_starts_per_second) == (2, 2.0)
    assert state.override_until is not None
    assert [(e["by"], e["reason"]) for e in state.history[1:]] == [
        ("ann", "night"),
        ("bob", "more"),
    ]
    clock.offset_ms += 91_000
    state = store.read(R)
    assert (state.max_concurrency, state.override_until) == (8, None)
    assert granted(store, *(owner(n) for n in range(2))) == [True, True]


@pytest.mark.parametrize("first", ["max_concurrency", "max_starts_per_second"])
@pytest.mark.parametrize(("ends", "later"), [(60_000, 90_000), (90_000, 60_000)])
def test_overrides_of_two_limits_end_each_at_its_own_time(
    store: CapacityStore, clock: StoreClock, first: str, ends: int, later: int
) -> None:
    base: dict[str, float] = {"max_concurrency": 8, "max_starts_per_second": 2.0}
    [second] = base.keys() - {first}
    limit(store, **base)
    for name, expires_ms in ((first, ends), (second, later)):
        store.set_limits(R, {name: 4}, by="", reason="", expires_ms=expires_ms, if_revision=None)

    def seen() -> dict[str, object]:
        state = store.read(R)
        return {name: getattr(state, name) for name in base}

    assert seen() == dict.fromkeys(base, 4)
    sooner = first if ends < later else second
    clock.offset_ms += 61_000
    for _ in range(2):  # a look, and what an update has written
        assert seen() == {**dict.fromkeys(base, 4), sooner: base[sooner]}
        store.acquire(R, [owner(1)], lease_ms=60_000)
    state = store.read(R)
    assert state.override_until is not None
    assert 20 < (state.override_until - state.now).total_seconds() < 30
    clock.offset_ms += 30_000
    assert seen() == base
    assert store.read(R).override_until is None


BASE: dict[str, float] = {"max_concurrency": 8, "max_starts_per_second": 2.0}
#: No limit, one, or both, with the end of each: of both the same, or one first.
ENDS: list[dict[str, int]] = [
    *({name: 60} for name in BASE),
    *(dict(zip(BASE, ends, strict=True)) for ends in ((60, 60), (60, 90), (90, 60))),
]
NAMED: list[dict[str, float | None]] = [
    {"max_concurrency": 6},
    {"max_starts_per_second": 3.0},
    {"max_concurrency": 6, "max_starts_per_second": 3.0},
    {"max_concurrency": None},
    {"max_starts_per_second": None},
]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("for_good", NAMED)
def test_a_change_for_good_ends_the_override_of_what_it_names_and_of_nothing_else(
    store: CapacityStore,
    clock: StoreClock,
    ends: dict[str, int],
    for_good: dict[str, float | None],
) -> None:
    limit(store, **BASE)
    for name, seconds in ends.items():
        store.set_limits(
            R, {name: 1}, by="", reason="", expires_ms=1000 * seconds, if_revision=None
        )
    limit(store, **for_good)
    left = {name: end for name, end in ends.items() if name not in for_good}
    begun = store.read(R).now
    for passed in (0, 61, 91):
        clock.offset_ms = 1000 * passed
        now = {name: 1 for name, end in left.items() if end > passed}
        for _ in range(2):  # a look, and what an update has written
            state = store.read(R)
            assert {name: getattr(state, name) for name in BASE} == {**BASE, **for_good, **now}
            until = state.override_until
            assert (until is not None) == bool(now)
            if until is not None:
                assert abs((until - begun).total_seconds() - max(left.values())) < 10
            store.acquire(R, [owner(passed)], lease_ms=60_000)
    history = store.read(R, with_history=True).history
    assert history[-1]["change"] == for_good


def test_a_change_of_what_changed_meanwhile_is_refused_with_the_current_revision(
    store: CapacityStore,
) -> None:
    limit(store, max_concurrency=8)
    with pytest.raises(RevisionConflict) as refused:
        store.set_paused(R, True, by="", reason="", if_revision=0)
    assert refused.value.revision == 1
    assert not store.read(R).paused


def test_of_racing_changes_from_one_revision_one_wins(store: CapacityStore) -> None:
    def change(n: int) -> bool:
        try:
            store.set_limits(
                R, {"max_concurrency": n}, by=str(n), reason="", expires_ms=None, if_revision=0
            )
        except RevisionConflict:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(change, range(1, 7)))
    assert sum(won) == 1
    assert store.read(R).max_concurrency == 1 + won.index(True)


def test_a_cooldown_is_never_shortened_and_ends_when_told(
    store: CapacityStore, clock: StoreClock
) -> None:
    store.set_cooldown(R, for_ms=60_000, by="", reason="", if_revision=None)
    store.cool_down(R, for_ms=1_000, by="wf", reason="429")
    until = store.read(R).cooldown_until
    assert until is not None
    assert until - store.read(R).now > timedelta(seconds=50)
    assert granted(store, owner(1)) == [False]
    store.set_cooldown(R, for_ms=0, by="", reason="", if_revision=None)
    store.clear_line(R, store.read(R).line)
    assert granted(store, owner(1)) == [True]


def test_many_refusals_from_outside_leave_one_entry_a_cooldown(store: CapacityStore) -> None:
    limit(store, max_concurrency=8)
    for _ in range(5):
        store.cool_down(R, for_ms=30_000, by="wf/step", reason="429")
    state = store.read(R, with_history=True)
    assert (state.revision, len(state.history)) == (2, 2)


def test_what_is_given_back_later_travels_with_the_next_update_or_a_flush(
    store: CapacityStore,
) -> None:
    groups = PermitGroups(store, lease_ms=LEASE_MS)
    waited_for: list[str] = []
    groups.when_waited_for = waited_for.append
    assert groups.acquire(R, owner(0)).holds(owner(0))
    groups.release_later(R, owner(0))
    assert store.read(R).holds(owner(0))
    state = groups.acquire(R, owner(1))
    assert [held.owner for held in state.holders] == [owner(1)]
    assert (groups.postponed(), groups.flush(R), waited_for) == ([], None, [])
    groups.release_later(R, owner(1))
    store.set_line(R)
    flushed = groups.flush(R)
    assert flushed is not None
    assert flushed.holders == ()
    assert waited_for == [R], "nobody would have handed the place on"
