"""Signals race suspends, polls, supersede, completion and each other: 100 orders of each."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import ActivityContext, InstanceStatus, Kernel, StepStatus, WaitForSignal
from kernel.definition import Definition
from kernel.testing import TimeShift, run_until_idle
from tests.crash.invariants import of_instance
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.waiting.interleaving import TURNS, Act, interleavings

POLL_SECONDS = 60


class Stage:
    """Three processes on one database, and what the activities saw, by biz_key."""

    def __init__(self, make_kernel: MakeKernel, of: Definition, database: Any) -> None:
        self.of = of
        self.worker, self.other, self.minder = (make_kernel(of, with_redis=False) for _ in range(3))
        self.signals = database["workflow_signals"]
        self.number = 0
        self.key = ""
        self.workflow_id = ""

    def begin(self) -> str:
        """Start a fresh instance."""
        self.number += 1
        self.key = f"race:{self.number}"
        self.workflow_id = start(self.worker, self.of, biz_key=self.key)
        return self.workflow_id

    def ring(self, kernel: Kernel, name: str, key: str = "k") -> Callable[[], bool]:
        """Return the delivery of the signal `name` of this instance."""
        return lambda: kernel.deliver_signal(
            workflow_id=self.workflow_id,
            signal_type="s",
            wait_key=key,
            signal_id=self.signal(name),
        )

    def late(self, act: Act, rng: random.Random) -> Act:
        """Return the same after a few looks, so that what takes two commands may come last too."""

        def look_first(looks: int = rng.randrange(20)) -> Any:
            for _ in range(looks):
                self.minder.get(self.workflow_id)
            return act()

        return look_first

    def drain(self) -> int:
        """Run what is due."""
        return self.worker.drain([QUEUE])

    def advance(self, seconds: float) -> None:
        """Let time pass for every process."""
        for kernel in (self.worker, self.other, self.minder):
            TimeShift(kernel).advance(seconds=seconds)

    def settle(self) -> None:
        """Look around, without telling anybody anything, until nothing is left to do."""
        while True:
            reconciled = self.minder.reconcile()
            if run_until_idle(self.worker, [QUEUE]) == sum(reconciled.found.values()) == 0:
                break
        found = of_instance(self.minder.get(self.workflow_id))
        assert found == []

    def signal(self, name: str) -> str:
        """Return the id of a signal of this instance."""
        return f"{self.key}:{name}"

    def kept(self, name: str) -> str:
        """Return what the inbox says of a signal."""
        rows = list(self.signals.find({"signal_id": self.signal(name)}))
        assert len(rows) == 1, rows
        return str(rows[0]["status"])


Seen = dict[str, list[tuple[str, str | None]]]


@pytest.fixture
def seen() -> Seen:
    """By biz_key, each call: its step, and what woke it: a signal's id, timer, poll, or nothing."""
    return {}


def note(seen: Seen, ctx: ActivityContext) -> str | None:
    resume = ctx.resume
    woken_by = None if resume is None else resume.signal_id or resume.kind
    seen.setdefault(ctx.biz_key, []).append((ctx.step, woken_by))
    return woken_by


@pytest.fixture
def make_stage(
    make_kernel: MakeKernel, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> Callable[..., Stage]:
    def make(*steps: Any, **options: Any) -> Stage:
        of = definition("test.race", dict(zip("abc", steps, strict=False)), **options)
        return Stage(make_kernel, of, mongo_client[mongo_db_name])

    return make


def test_a_signal_races_the_wait_it_is_for(make_stage: Callable[..., Stage], seen: Seen) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k")

    stage = make_stage(wait)
    for rng in interleavings():
        stage.begin()
        acts: list[Act] = [
            stage.drain,
            stage.ring(stage.other, "one"),
            stage.minder.reconcile,
        ]
        TURNS.run(acts, rng)
        stage.settle()
        assert seen[stage.key] == [("a", None), ("a", stage.signal("one"))]
        assert stage.worker.get(stage.workflow_id).status is InstanceStatus.COMPLETED
        assert stage.kept("one") == "matched"


def test_a_signal_delivered_twice_at_once_counts_once(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k")

    stage = make_stage(wait)
    for rng in interleavings():
        stage.begin()
        acts = [stage.ring(stage.other, "one"), stage.ring(stage.minder, "one"), stage.drain]
        *told, _ = TURNS.run(acts, rng)
        stage.settle()
        assert seen[stage.key] == [("a", None), ("a", stage.signal("one"))]
        assert sorted(told) == [False, True]


def test_of_two_signals_each_wakes_the_step_once(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait_twice(ctx: ActivityContext) -> Any:
        note(seen, ctx)
        count = (ctx.checkpoint or 0) + (ctx.resume is not None)
        return "done" if count == 2 else WaitForSignal("s", wait_key="k", checkpoint=count)

    stage = make_stage(wait_twice)
    for rng in interleavings():
        stage.begin()
        acts = [stage.drain, stage.ring(stage.other, "one"), stage.ring(stage.minder, "two")]
        TURNS.run(acts, rng)
        stage.settle()
        first, *woken = [by for _, by in seen[stage.key]]
        assert first is None
        assert sorted(filter(None, woken)) == [stage.signal("one"), stage.signal("two")]
        assert stage.worker.get(stage.workflow_id).status is InstanceStatus.COMPLETED


def test_one_signal_wakes_one_of_two_waits_that_follow_each_other(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k")

    stage = make_stage(wait, wait)
    for rng in interleavings():
        stage.begin()
        stage.drain()
        acts = [stage.ring(stage.other, "one"), stage.ring(stage.minder, "one"), stage.drain]
        TURNS.run([*acts, stage.drain], rng)
        stage.settle()
        calls = [("a", None), ("a", stage.signal("one")), ("b", None)]
        assert seen[stage.key] == calls
        stage.ring(stage.other, "two")()
        stage.settle()
        assert seen[stage.key] == [*calls, ("b", stage.signal("two"))]


def test_a_signal_and_the_poll_time_compete_on_one_condition(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k", poll_after=POLL_SECONDS)

    stage = make_stage(wait)
    winners = set()
    for rng in interleavings():
        stage.begin()
        stage.drain()
        stage.advance(POLL_SECONDS + 1)
        tick = stage.late(stage.minder.tick, rng)
        TURNS.run([tick, stage.ring(stage.other, "one"), stage.drain], rng)
        stage.settle()
        (_, first), (_, winner) = seen[stage.key]
        assert first is None
        winners.add("poll" if winner == "poll" else "signal")
        assert winner == "poll" or stage.kept("one") == "matched"
        assert stage.kept("one") != "pending"
    assert winners == {"poll", "signal"}


def test_a_fact_stored_before_its_signal_is_never_missed_by_a_poll(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    facts: set[str] = set()

    def wait(ctx: ActivityContext) -> Any:
        note(seen, ctx)
        is_told = ctx.biz_key in facts
        return "done" if is_told else WaitForSignal("s", wait_key="k", poll_after=POLL_SECONDS)

    stage = make_stage(wait)
    for rng in interleavings():
        stage.begin()
        stage.drain()
        stage.advance(POLL_SECONDS + 1)

        def tell() -> bool:
            facts.add(stage.key)
            return stage.ring(stage.other, "one")()

        TURNS.run([tell, stage.minder.tick, stage.drain], rng)
        stage.settle()
        assert stage.worker.get(stage.workflow_id).status is InstanceStatus.COMPLETED
        assert len(seen[stage.key]) <= 3


def test_supersede_wins_or_comes_too_late_but_never_both(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k")

    stage = make_stage(wait)
    endings = set()
    for rng in interleavings():
        workflow_id = stage.begin()
        stage.drain()

        def supersede(workflow_id: str = workflow_id) -> bool:
            return stage.minder.supersede(workflow_id, reason="a new generation")

        acts = [stage.late(supersede, rng), stage.ring(stage.other, "one"), stage.drain]
        changed, *_ = TURNS.run(acts, rng)
        stage.settle()
        instance = stage.worker.get(workflow_id)
        endings.add(instance.status)
        assert (instance.status is InstanceStatus.CANCELED) == changed
        assert supersede() is False
        assert instance.waits == ()
        assert instance.claim_token is None
        assert instance.steps["a"].resume is None
        assert len(seen[stage.key]) <= 2
        assert stage.kept("one") != "pending"
        assert stage.ring(stage.other, "late")() is False
        assert stage.kept("late") == "unmatched"
    assert endings == {InstanceStatus.CANCELED, InstanceStatus.COMPLETED}


def test_a_signal_that_races_completion_wakes_nobody_or_in_time(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key="k")

    stage = make_stage(wait)
    for rng in interleavings():
        stage.begin()
        stage.drain()
        stage.ring(stage.other, "one")()
        acts = [stage.drain, stage.ring(stage.other, "two"), stage.ring(stage.minder, "one")]
        TURNS.run(acts, rng)
        stage.settle()
        assert seen[stage.key] == [("a", None), ("a", stage.signal("one"))]
        assert stage.kept("one") == "matched"
        assert stage.kept("two") == "unmatched"


def test_two_branches_and_their_signals_meet_in_any_order(
    make_stage: Callable[..., Stage], seen: Seen
) -> None:
    def wait(ctx: ActivityContext) -> Any:
        return note(seen, ctx) or WaitForSignal("s", wait_key=ctx.step)

    def join(ctx: ActivityContext) -> Any:
        return [ctx.output("a"), ctx.output("b")]

    stage = make_stage(wait, wait, join, depends_on={"a": [], "b": [], "c": ["a", "b"]})
    for rng in interleavings():
        stage.begin()
        acts = [stage.drain, stage.ring(stage.other, "A", "a"), stage.ring(stage.minder, "B", "b")]
        TURNS.run(acts, rng)
        stage.settle()
        instance = stage.worker.get(stage.workflow_id)
        assert instance.output["c"] == [stage.signal("A"), stage.signal("B")]
        assert len(seen[stage.key]) == 4
        assert {step.status for step in instance.steps.values()} == {StepStatus.COMPLETED}
