"""Who stands where in a line: ties have an order, and what cannot be read holds nobody up."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pymongo.collection import Collection

from kernel import Definition, Kernel, Priority, Sleep, Step
from kernel.protocol.resources import PermitOwner
from kernel.publish import StartItem
from kernel.reconcile import duties, ticking
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

R = "psp"


def places(kernel: Kernel) -> list[int | None]:
    """Return what each in line is told its place is, in the order of the line."""
    return [kernel.why(each.workflow_id).position for each in kernel.capacity.status(R).waiters]


def test_many_registered_at_one_moment_stand_in_their_order_and_each_is_told_its_place(
    make_kernel: MakeKernel,
) -> None:
    of = definition("test.ties", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(of)
    kernel.capacity.pause(R)
    late = kernel.start_many(of.plan, [StartItem(f"late-{n}") for n in range(5)])
    first = kernel.start_many(of.plan, [StartItem("first", priority=Priority.REALTIME)])
    kernel.drain([QUEUE])
    line = kernel.capacity.status(R).waiters
    assert len({each.since for each in line[1:]}) == 1, "they tie"
    assert [each.workflow_id for each in line] == [one.workflow_id for one in [*first, *late]]
    assert [each.position for each in line] == places(kernel) == [1, 2, 3, 4, 5, 6]
    looked = kernel._parts.permits.waiters.first(R, limit=6)
    assert [each.workflow_id for each in looked] == [each.workflow_id for each in line]


def test_the_front_read_whole_says_of_each_what_the_line_says(make_kernel: MakeKernel) -> None:
    """Two steps of which one waits elsewhere as well, one put off by time, one too large."""
    both = [R, "other"]
    of = definition(
        "test.whole",
        {
            "a": Step(lambda _: None, traffic_resource=lambda value: value["a"]),
            "b": Step(lambda _: None, traffic_resource=lambda value: value["b"]),
            "c": Step(lambda _: Sleep(3600)),
        },
        depends_on={"a": [], "b": [], "c": []},
    )
    kernel = make_kernel(of)
    kernel.capacity.pause(R)
    for number, (a, b, pad) in enumerate([(R, both, 0), (both, [], 40_000), ([], R, 0)]):
        value = {"a": a, "b": b, "pad": "x" * pad}
        kernel.start_or_resume(of.plan, biz_key=f"k{number}", input=value)
        kernel.drain([QUEUE])
    waiters = kernel._parts.permits.waiters
    plain = waiters.first(R, limit=5)
    assert [each.steps for each in plain] == [("a", "b"), ("a",), ("b",)]
    assert [replace(each, document=None) for each in waiters.first_whole(R, limit=5)] == plain
    assert [each.document is None for each in waiters.first_whole(R, limit=5)] == [
        False,
        True,
        False,
    ]
    assert [replace(each, document=None) for each in waiters.first_whole(R, limit=1)] == plain[:1]


def unset(path: str) -> list[dict[str, Any]]:
    return [{"$unset": path}]


def put(path: str, value: object) -> list[dict[str, Any]]:
    return [{"$set": {path: {"$literal": value}}}]


#: What a line cannot do with a document, and what is said of it.
UNREADABLE: dict[str, list[dict[str, Any]]] = {
    "blocked_on.since": unset("blocked_on.since"),
    "round_started_at": put("round_started_at", "yesterday"),
    "revision": put("revision", "x"),
    "queue": put("queue", 3),
    "priority": put("priority", 7),
    "workflow_id": put("workflow_id", 3),
    "blocked_on.step": put("blocked_on.step", 3),
    "blocked_on.resources": put("blocked_on.resources", R),
    "needs": put("steps.a.blocked_on.needs", [[R]]),
}


class Line:
    """A line whose first so many cannot be read; somebody else holds the only permit."""

    def __init__(
        self, kernel: Kernel, of: Definition, instances: Collection[Any], ran: list[str]
    ) -> None:
        self.kernel, self.of, self.ran, self._instances = kernel, of, ran, instances
        kernel.capacity.set_limit(R, max_concurrency=1)
        self._other = PermitOwner("other", "s", "other")
        kernel._parts.permits.store.acquire(R, [self._other], lease_ms=3_600_000)

    def come(self, *names: str) -> None:
        for name in names:
            start(self.kernel, self.of, biz_key=name)
            self.kernel.drain([QUEUE])

    def spoil(self, change: list[dict[str, Any]], *names: str) -> None:
        """Write by hand what no version of the validator allows."""
        found = {"biz_key": {"$in": list(names)}}
        self._instances.database.command(
            "update",
            self._instances.name,
            updates=[{"q": found, "u": change, "multi": True}],
            bypassDocumentValidation=True,
        )

    def open(self) -> None:
        """Give the permit back as somebody does who dies of it: only the clock hands on."""
        self.kernel._parts.permits.store.release(R, [self._other])

    def go_on(self, by: Callable[[], object], *, turns: int = 8) -> None:
        for _ in range(turns):
            by()
            self.kernel.drain([QUEUE])
            TimeShift(self.kernel).advance(seconds=1)


MakeLine = Callable[..., Line]


@pytest.fixture
def make_line(make_kernel: MakeKernel, instances: Collection[Any]) -> MakeLine:
    def made(**kernel_options: Any) -> Line:
        ran: list[str] = []
        step = Step(lambda ctx: ran.append(ctx.biz_key), traffic_resource=R)
        of = definition("test.line", {"a": step})
        return Line(make_kernel(of, **kernel_options), of, instances, ran)

    return made


@pytest.mark.parametrize("fault", UNREADABLE)
@pytest.mark.parametrize("by", ["tick", "reconcile"])
def test_one_that_cannot_be_read_is_passed_over_said_and_stops_nobody(
    make_line: MakeLine, caplog: pytest.LogCaptureFixture, fault: str, by: str
) -> None:
    line = make_line(with_redis=False)
    line.come("bad", "good", "better")
    line.spoil(UNREADABLE[fault], "bad")
    line.open()
    with caplog.at_level(logging.ERROR, "baton.store"):
        line.kernel._parts.permits.handing_on.hand_on(R)
    [said] = [each.message for each in caplog.records if "passed over in" in each.message]
    assert said.startswith(f"passed over in the line of {R}: ")
    assert said.endswith(f" ({fault})")
    line.go_on(getattr(line.kernel, by))
    assert line.ran == ["good", "better"]


@pytest.mark.parametrize("fault", UNREADABLE)
def test_people_see_the_line_without_one_that_cannot_be_read(
    make_line: MakeLine, fault: str
) -> None:
    line = make_line()
    line.come("bad", "good", "better")
    line.spoil(UNREADABLE[fault], "bad")
    shown = line.kernel.capacity.status(R).waiters
    assert [line.kernel.get(each.workflow_id).biz_key for each in shown] == ["good", "better"]
    if fault not in {"blocked_on.step", "needs"}:  # what no filter tells still counts as somebody
        assert places(line.kernel) == [1, 2]


def test_a_page_is_filled_past_those_that_cannot_be_read(make_line: MakeLine) -> None:
    line = make_line()
    bad = [f"bad-{n}" for n in range(12)]
    line.come(*bad, "good", "better")
    line.spoil(UNREADABLE["blocked_on.since"], *bad)
    first = line.kernel._parts.permits.waiters.first
    assert [len(first(R, limit=limit)) for limit in (1, 2, 5, 20)] == [1, 2, 2, 2]


def test_a_line_of_those_that_cannot_be_read_is_not_taken_for_an_empty_one(
    make_line: MakeLine,
) -> None:
    line = make_line(with_redis=False)
    line.come("bad")
    line.spoil(UNREADABLE["blocked_on.since"], "bad")
    line.open()
    line.kernel.tick()
    store = line.kernel._parts.permits.store
    assert store.read(R).line > 0, "it stands there for whoever can read it"
    line.come("good")
    line.go_on(line.kernel.tick, turns=2)
    assert line.ran == ["good"], "and keeps nobody out"
    line.spoil(put("blocked_on.since", line.kernel.capacity.status(R).now), "bad")
    line.go_on(line.kernel.tick)
    assert line.ran == ["good", "bad"]
    assert store.read(R).line == 0


def test_a_name_that_is_waited_for_is_known_however_the_waiter_looks(make_line: MakeLine) -> None:
    line = make_line()
    line.come("bad", "good")
    line.spoil(put("blocked_on", [{"resources": ["a", 3, R]}, 4]), "bad")
    waiters = line.kernel._parts.permits.waiters
    assert waiters.waited_for(limit=9) == ["a", R]
    assert waiters.waited_for(limit=1) == ["a"]
    assert waiters.waited_for(limit=1, after="a") == [R]


@pytest.mark.parametrize("by", ["tick", "reconcile"])
def test_more_lines_than_one_look_takes_are_looked_at_in_turn(
    make_line: MakeLine, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    line = make_line(with_redis=False)
    monkeypatch.setattr(ticking, "_BOUND", 2)
    monkeypatch.setattr(duties, "_BOUND", 2)
    monkeypatch.setattr(duties, "_TURNS", 1)
    capacity = line.kernel.capacity
    for number in range(5):  # before ours by name, and closed
        step = Step(lambda _: None, traffic_resource=f"a{number}")
        closed = definition(f"test.closed_{number}", {"a": step})
        line.kernel.register(closed)
        capacity.pause(f"a{number}")
        start(line.kernel, closed, biz_key=f"closed-{number}")
    line.come("ours")
    line.open()
    if by == "reconcile":  # nothing says that somebody waits
        store = line.kernel._parts.permits.store
        assert store.clear_line(R, store.read(R).line)
    line.go_on(getattr(line.kernel, by))
    assert line.ran == ["ours"]
