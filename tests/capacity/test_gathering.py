"""Waiters of several resources: their turn comes, one place at most is idle for it, no circle."""

from datetime import timedelta

import pytest

from kernel import ActivityContext, InstanceStatus, Kernel, RetryPolicy, Step, limits
from kernel.protocol.resources import PermitOwner, ResourceState
from kernel.store import CapacityStore
from kernel.testing import TimeShift, run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

NAMES = ("a", "b", "c")


class Crowd:
    """Workflows of one step that needs the resources their input names, and others that hold."""

    def __init__(self, make_kernel: MakeKernel, *, slots: int = 1, limit: int = 1) -> None:
        self.ran: list[str] = []
        self.order = definition("test.crowd", {"s": Step(self._call, traffic_resource=list)})
        self.kernel: Kernel = make_kernel(self.order, slots_per_child=slots)
        self.store = self.kernel._parts.permits.store
        self.ids: dict[str, str] = {}
        self.kernel.tick()  # the first one looks at everything, also at holders nobody knows
        for name in NAMES:
            self.kernel.capacity.set_limit(name, max_concurrency=limit)
            others = [self._other(name, n) for n in range(limit)]
            state = self.store.acquire(name, others, lease_ms=3_600_000)
            assert len(state.holders) == limit

    def _call(self, ctx: ActivityContext) -> None:
        self.ran.append(ctx.biz_key)

    def _other(self, name: str, n: int) -> PermitOwner:
        return PermitOwner(f"other-{n}", "s", name)

    def comes(self, biz_key: str, *needs: str) -> None:
        """Register one and let it be put off."""
        self.ids[biz_key] = start(self.kernel, self.order, list(needs), biz_key=biz_key)
        assert self.kernel.run_once([QUEUE])
        assert self.waits_for(biz_key)

    def gives(self, name: str, n: int = 0) -> None:
        """Give one permit of those others hold back, and hand on."""
        state = self.store.release(name, [self._other(name, n)])
        self.kernel._parts.permits.handing_on.hand_on(name, state)

    def takes(self, name: str, n: int = 0) -> bool:
        """Take a permit as others do, past the line; tell whether there was one."""
        owner = self._other(name, n)
        self.store.clear_line(name, self.store.read(name).line)
        held = self.store.acquire(name, [owner], lease_ms=3_600_000).holds(owner)
        self.store.set_line(name)
        return held

    def waits_for(self, biz_key: str) -> tuple[str, ...]:
        """Return the resources in whose lines one stands."""
        blocked = self.kernel.get(self.ids[biz_key]).blocked_on
        return tuple(blocked.resources) if blocked else ()

    def all_completed(self) -> bool:
        """Tell whether all are completed and nothing is kept of any resource."""
        instances = [self.kernel.get(each) for each in self.ids.values()]
        kept = [len(self.store.read(name).reserved) for name in NAMES]
        completed = {instance.status for instance in instances} == {InstanceStatus.COMPLETED}
        return completed and kept == [0, 0, 0]


@pytest.fixture
def crowd(make_kernel: MakeKernel) -> Crowd:
    return Crowd(make_kernel)


def test_the_first_in_line_keeps_its_place_while_it_waits_for_the_next(crowd: Crowd) -> None:
    crowd.comes("both", "b", "a")
    for n in range(3):
        crowd.comes(f"a{n}", "a")
        crowd.comes(f"b{n}", "b")
    since = crowd.kernel.get(crowd.ids["both"]).blocked_on
    crowd.gives("a")
    assert crowd.kernel.drain([QUEUE]) == 0, "its place went to somebody who needs only that one"
    assert crowd.store.read("a").gathering == (crowd.ids["both"],)
    assert crowd.waits_for("both") == ("b",)
    moved = crowd.kernel.get(crowd.ids["both"]).blocked_on
    assert since is not None
    assert moved is not None
    assert moved.since == since.since
    crowd.gives("b")
    crowd.kernel.drain([QUEUE])
    assert crowd.ran[0] == "both"
    assert crowd.all_completed()


def test_what_comes_later_in_order_is_not_kept(crowd: Crowd) -> None:
    crowd.comes("both", "a", "b")
    crowd.comes("b0", "b")
    assert crowd.waits_for("both") == ("a",)
    crowd.gives("b")
    crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["b0"]
    assert crowd.store.read("b").reserved == ()
    crowd.gives("a")
    crowd.kernel.drain([QUEUE])
    assert crowd.all_completed()


class Overtaken:
    """`both` gets a place of `b`, and somebody else takes that of `a` before it does."""

    def __init__(self, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
        self.crowd = crowd
        crowd.comes("both", "a", "b")
        crowd.gives("b")
        reserve = CapacityStore.reserve

        def overtaken(
            store: CapacityStore, resource: str, names: list[str], **more: bool
        ) -> ResourceState:
            if resource == "a":
                monkeypatch.setattr(CapacityStore, "reserve", reserve)
                assert reserve(store, "a", ["wf_else"]).reserved == ("wf_else",)
                crowd.comes("one", "b")
            return reserve(store, resource, names, **more)

        monkeypatch.setattr(CapacityStore, "reserve", overtaken)

    def is_kept(self) -> bool:
        return self.crowd.ids["both"] in self.crowd.store.read("b").reserved


def test_a_place_that_was_kept_in_vain_is_given_back_and_goes_to_who_found_it_kept(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tick runs."""
    overtaken = Overtaken(crowd, monkeypatch)
    crowd.gives("a")
    assert not overtaken.is_kept()
    assert crowd.waits_for("both") == ("a",)
    eventually(lambda: crowd.kernel.drain([QUEUE]), 4, "nobody looked where it was kept")
    assert crowd.ran == ["one"]


def test_a_death_before_a_place_kept_in_vain_is_given_back_leaves_it_to_its_end_and_to_tick(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Died

    overtaken = Overtaken(crowd, monkeypatch)
    monkeypatch.setattr(CapacityStore, "unreserve", dies)
    with pytest.raises(Died):
        crowd.gives("a")
    assert overtaken.is_kept()
    crowd.kernel.tick()
    assert crowd.kernel.drain([QUEUE]) == 0
    TimeShift(crowd.kernel).advance(seconds=limits.RESERVATION_SECONDS + 1)
    for _ in range(2):
        crowd.kernel.tick()
        crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["both", "one"]


def test_one_that_stands_at_the_later_one_goes_back_to_the_first(crowd: Crowd) -> None:
    crowd.gives("a")
    crowd.comes("both", "a", "b")
    assert crowd.waits_for("both") == ("b",)
    assert crowd.takes("a")
    crowd.comes("a0", "a")
    crowd.gives("b")
    assert crowd.waits_for("both") == ("a",)
    assert crowd.takes("b")
    crowd.gives("a")
    assert crowd.store.read("a").gathering == (crowd.ids["both"],)
    crowd.gives("b")
    crowd.kernel.drain([QUEUE])
    assert crowd.ran[0] == "both"
    assert crowd.all_completed()


def test_three_are_gathered_one_after_the_other(crowd: Crowd) -> None:
    crowd.comes("all", "c", "b", "a")
    for name in NAMES:
        crowd.comes(f"{name}0", name)
    for name in NAMES:
        assert crowd.waits_for("all") == (name,)
        crowd.gives(name)
    crowd.kernel.drain([QUEUE])
    assert crowd.ran[0] == "all"
    assert crowd.all_completed()


def test_one_place_of_a_resource_is_idle_at_most(make_kernel: MakeKernel) -> None:
    crowd = Crowd(make_kernel, limit=2)
    for n in range(2):
        crowd.comes(f"both{n}", "a", "b")
    crowd.comes("a0", "a")
    crowd.gives("a", 0)
    crowd.gives("a", 1)
    crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["a0"], "a second place was kept for somebody who has to wait"
    assert crowd.store.read("a").gathering == (crowd.ids["both0"],)
    crowd.gives("b", 0)
    crowd.gives("b", 1)
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.all_completed()


def test_nothing_is_kept_for_the_second_in_line(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first waits for a delay beside its place, so that it cannot gather itself."""

    def fails(_: ActivityContext) -> None:
        raise OSError("later")

    delayed = Step(fails, retry=RetryPolicy(max_retry=1, backoff="fixed", initial=600))
    needs_two = Step(crowd._call, traffic_resource=["a", "b"])
    first = definition("test.first", {"s": needs_two, "t": delayed}, depends_on={"s": [], "t": []})
    crowd.kernel.register(first)
    start(crowd.kernel, first, biz_key="first")
    assert crowd.kernel.run_once([QUEUE])
    crowd.gives("c")
    crowd.comes("second", "a", "c")
    crowd.comes("a0", "a")
    reserve = CapacityStore.reserve

    def too_late(self: CapacityStore, resource: str, *told: object) -> ResourceState:
        if resource == "c":
            monkeypatch.undo()
            assert crowd.takes("c")
        return reserve(self, resource, *told)  # type: ignore[arg-type]

    monkeypatch.setattr(CapacityStore, "reserve", too_late)
    crowd.gives("a")
    assert crowd.store.read("a").gathering == ()
    crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["a0"]


def test_a_place_is_kept_as_long_as_its_waiter_has_waited_and_then_goes_to_others(
    crowd: Crowd,
) -> None:
    crowd.comes("both", "a", "b")
    crowd.comes("a0", "a")
    TimeShift(crowd.kernel).advance(seconds=20)  # by itself it would look at 30
    crowd.gives("a")
    moved = crowd.kernel.get(crowd.ids["both"]).revision
    TimeShift(crowd.kernel).advance(seconds=limits.GATHERING_SECONDS - 8)
    run_until_idle(crowd.kernel, [QUEUE])
    again = crowd.kernel.get(crowd.ids["both"]).revision
    assert again == moved, "it looked by itself and lost what it kept"
    assert crowd.store.read("a").gathering == (crowd.ids["both"],)
    assert crowd.ran == []
    TimeShift(crowd.kernel).advance(seconds=8)
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.ran == ["a0"]
    assert crowd.takes("a")
    TimeShift(crowd.kernel).advance(seconds=200)
    run_until_idle(crowd.kernel, [QUEUE])
    crowd.gives("b")
    assert crowd.waits_for("both") == ("a",)
    crowd.takes("b")
    crowd.gives("a")
    waited = crowd.kernel.get(crowd.ids["both"])
    blocked = waited.blocked_on
    assert blocked is not None
    assert blocked.until is not None
    assert blocked.until - crowd.store.read("a").now > timedelta(seconds=200)
    crowd.gives("b")
    crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["a0", "both"]


def test_reconcile_frees_the_place_of_one_that_waits_no_longer(crowd: Crowd) -> None:
    crowd.comes("both", "a", "b")
    crowd.comes("a0", "a")
    crowd.gives("a")
    crowd.kernel.reconcile()
    assert crowd.store.read("a").gathering == (crowd.ids["both"],)
    crowd.kernel.supersede(crowd.ids["both"], reason="gone")
    assert crowd.kernel.reconcile().found["ended_permits"] >= 1
    assert crowd.store.read("a").gathering == ()
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.ran == ["a0"]


@pytest.mark.parametrize("slots", [1, 3])
def test_its_turn_comes_within_few_grants_among_many_that_need_one(
    make_kernel: MakeKernel, slots: int
) -> None:
    crowd = Crowd(make_kernel, slots=slots)
    for name in ("a", "b"):
        crowd.comes(f"{name}-before", name)
    crowd.comes("both", "a", "b")
    for n in range(15):
        for name in ("a", "b"):
            crowd.comes(f"{name}{n}", name)
    crowd.gives("a")
    crowd.gives("b")
    crowd.gives("c")
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.all_completed()
    # Those before it, and as many as were on their way when it came to the front of each line.
    assert crowd.ran.index("both") <= 2 + 2 * slots, crowd.ran


@pytest.mark.parametrize("slots", [1, 3])
def test_crossing_needs_never_wait_in_a_circle(make_kernel: MakeKernel, slots: int) -> None:
    crowd = Crowd(make_kernel, slots=slots)
    crossing = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b", "c")]
    for n in range(3):
        for needs in crossing:
            crowd.comes(f"{''.join(needs)}{n}", *needs)
        for name in NAMES:
            crowd.comes(f"{name}{n}", name)
    for name in NAMES:
        crowd.gives(name)
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.all_completed(), crowd.ran
