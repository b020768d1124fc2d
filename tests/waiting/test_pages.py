"""A page of signals answers and does what its signals would, one by one, in a few commands."""

from collections.abc import Callable
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import (
    ActivityContext,
    InstanceStatus,
    InvalidValue,
    Kernel,
    Signal,
    StoreUnavailable,
    WaitForSignal,
    limits,
    workflow_id_of,
)
from kernel.store import GroupedInstances
from kernel.testing import TimeShift, run_until_idle
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.waiting.interleaving import TURNS, interleavings

POLL_SECONDS = 60


def wait(ctx: ActivityContext) -> Any:
    """Wait once; give what woke it."""
    if ctx.resume is not None:
        return ctx.resume.signal_id or ctx.resume.kind
    told = ctx.input or {}
    return WaitForSignal(
        "s", wait_key=ctx.step, generation=told.get("generation", 0), poll_after=told.get("poll")
    )


ORDER = definition("test.page", {"a": wait})
BOTH = definition("test.both", {"a": wait, "b": wait}, depends_on={"a": [], "b": []})


def signal(name: str, *, wait_key: str = "a", generation: int = 0, number: int = 0) -> Signal:
    """Return the signal of a number for the instance of that name."""
    return Signal(
        signal_id=f"{name}:{number}",
        workflow_id=workflow_id_of(name),
        signal_type="s",
        wait_key=wait_key,
        generation=generation,
    )


@pytest.fixture
def inbox(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Any:
    return mongo_client[mongo_db_name]["workflow_signals"]


def statuses(inbox: Any) -> dict[str, str]:
    return {row["signal_id"]: row["status"] for row in inbox.find()}


def one_by_one(kernel: Kernel, signals: list[Signal]) -> list[bool]:
    parts = {"signal_id", "workflow_id", "signal_type", "wait_key", "generation"}
    return [kernel.deliver_signal(**one.model_dump(include=parts)) for one in signals]


def as_a_page(kernel: Kernel, signals: list[Signal]) -> list[bool]:
    return kernel.deliver_signals(signals)


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("deliver", [one_by_one, as_a_page])
def test_a_mixed_page_is_answered_and_acted_on_as_its_signals_one_by_one(
    make_kernel: MakeKernel,
    inbox: Any,
    deliver: Callable[[Kernel, list[Signal]], list[bool]],
    with_redis: bool,
) -> None:
    kernel = make_kernel(ORDER, BOTH, with_redis=with_redis)
    for name in ("waits", "waits:2", "ended", "told"):
        start(kernel, ORDER, biz_key=name)
    start(kernel, ORDER, {"generation": 2}, biz_key="second")
    start(kernel, BOTH, biz_key="both")
    run_until_idle(kernel, [QUEUE])
    kernel.supersede(workflow_id_of("ended"), reason="obsolete")
    assert one_by_one(kernel, [signal("told")]) == [True]
    page = [
        signal("waits"),
        signal("nobody yet"),
        signal("ended"),
        signal("told"),
        signal("second", generation=1, number=1),
        signal("second", generation=2, number=2),
        signal("both", wait_key="b", number=1),
        signal("both", wait_key="a", number=2),
        signal("both", wait_key="a", number=3),
        signal("waits"),
        signal("waits:2", wait_key="another"),
    ]
    new = [True, True, False, False, True, True, True, True, True, False, True]
    assert deliver(kernel, page) == new
    assert statuses(inbox) == {
        "waits:0": "matched",
        "nobody yet:0": "pending",
        "ended:0": "unmatched",
        "told:0": "matched",
        "second:1": "pending",
        "second:2": "matched",
        "both:1": "matched",
        "both:2": "matched",
        "both:3": "pending",
        "waits:2:0": "pending",
    }
    assert deliver(kernel, page) == [False] * len(page)
    run_until_idle(kernel, [QUEUE])
    outputs = {one.biz_key: one.output for one in kernel.list_instances()}
    assert outputs == {
        "waits": {"a": "waits:0"},
        "waits:2": {},
        "ended": {},
        "told": {"a": "told:0"},
        "second": {"a": "second:2"},
        "both": {"a": "both:2", "b": "both:1"},
    }


def test_a_page_costs_the_same_commands_however_many_it_wakes(
    make_kernel: MakeKernel, commands: CommandLog
) -> None:
    kernel = make_kernel(ORDER)
    for count in (2, 40):
        names = [f"{count}:{n}" for n in range(count)]
        for name in names:
            start(kernel, ORDER, biz_key=name)
        run_until_idle(kernel, [QUEUE])
        commands.clear()
        assert all(kernel.deliver_signals([signal(name) for name in names]))
        # The clock, the inbox, the instances, the signals again, the waking, the marking.
        assert commands.names == ["aggregate", "insert", "aggregate", "find", "update", "update"]


def test_more_than_one_bulk_holds_is_delivered_in_several(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch, inbox: Any
) -> None:
    monkeypatch.setattr(limits, "PAGE_WRITES", 7)
    kernel = make_kernel(ORDER)
    names = [f"p:{n}" for n in range(20)]
    for name in names:
        start(kernel, ORDER, biz_key=name)
    run_until_idle(kernel, [QUEUE])
    assert kernel.deliver_signals([signal(name) for name in names]) == [True] * 20
    assert run_until_idle(kernel, [QUEUE]) == 20
    assert set(statuses(inbox).values()) == {"matched"}
    assert kernel.deliver_signals([]) == []


BAD: list[tuple[Any, str]] = [
    ({"signal_type": ""}, "signal_type"),
    ({"workflow_id": "wf_1"}, "workflow_id"),
    ({"generation": "2"}, "generation"),
    ({"wait_key": None}, "wait_key"),
    ({"wait": "a"}, "'wait'"),
    ({"signal_id": "good:0", "wait_key": "other"}, "id of its own"),
]


@pytest.mark.parametrize(("part", "word"), BAD, ids=lambda value: str(value)[:30])
def test_one_bad_signal_refuses_its_page_before_anything_is_written(
    make_kernel: MakeKernel, inbox: Any, part: dict[str, Any], word: str
) -> None:
    kernel = make_kernel(ORDER)
    good = signal("good").model_dump(exclude={"status", "created_at"})
    bad = {**signal("bad").model_dump(exclude={"status", "created_at"}), **part}
    with pytest.raises(InvalidValue, match=word) as refused:
        kernel.deliver_signals([good, bad])
    assert "signals[1]" in str(refused.value)
    assert inbox.count_documents({}) == 0


@pytest.mark.parametrize("nothing", [None, 7, "wf", ["a"]])
def test_what_is_no_signal_at_all_is_refused_in_words(
    make_kernel: MakeKernel, nothing: Any
) -> None:
    with pytest.raises(InvalidValue, match=r"signals\[0\].*a Signal, or a mapping"):
        make_kernel(ORDER).deliver_signals([nothing])


def test_an_id_recorded_for_another_wait_is_refused_after_the_others_are_delivered(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    for name in ("one", "two"):
        start(kernel, ORDER, biz_key=name)
    run_until_idle(kernel, [QUEUE])
    kernel.deliver_signals([signal("other")])
    stolen = signal("one").model_copy(update={"signal_id": "other:0"})
    with pytest.raises(InvalidValue, match=r"signals\[1\].*id of its own"):
        kernel.deliver_signals([signal("one"), stolen, signal("two")])
    assert statuses(inbox) == {"one:0": "matched", "two:0": "matched", "other:0": "pending"}


def test_what_a_bulk_cut_short_leaves_is_finished_by_reconciliation_or_a_repeat(
    make_kernel: MakeKernel, inbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = make_kernel(ORDER)
    names = [f"cut:{n}" for n in range(6)]
    for name in names:
        start(kernel, ORDER, biz_key=name)
    run_until_idle(kernel, [QUEUE])
    commit_all = GroupedInstances.commit_all

    def cut_short(self: GroupedInstances, commits: Any) -> int:
        commit_all(self, commits[:2])
        raise StoreUnavailable("the connection broke in the middle")

    monkeypatch.setattr(GroupedInstances, "commit_all", cut_short)
    with pytest.raises(StoreUnavailable):
        kernel.deliver_signals([signal(name) for name in names])
    monkeypatch.undo()
    assert set(statuses(inbox).values()) == {"pending"}
    assert kernel.deliver_signals([signal(name) for name in names[:4]]) == [False] * 4
    assert kernel.reconcile().found["pending_signals"] == 2
    assert run_until_idle(kernel, [QUEUE]) == 6
    assert [kernel.get(workflow_id_of(n)).output["a"] for n in names] == [f"{n}:0" for n in names]
    assert set(statuses(inbox).values()) == {"matched"}


@pytest.mark.timeout(300)
def test_a_page_races_polls_supersedes_repeats_and_workers(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    calls: dict[str, list[Any]] = {}

    def listen(ctx: ActivityContext) -> Any:
        by = ctx.resume and (ctx.resume.signal_id or ctx.resume.kind)
        calls.setdefault(ctx.biz_key, []).append(by)
        return wait(ctx)

    order = definition("test.race", {"a": listen})
    worker, sender, again, minder = (make_kernel(order, with_redis=False) for _ in range(4))
    for number, rng in enumerate(interleavings(default=30)):
        waits, polls, ended, late = names = [f"{number}:{n}" for n in ("w", "p", "e", "l")]
        for name in (waits, polls, ended):
            start(worker, order, {"poll": POLL_SECONDS if name == polls else None}, biz_key=name)
        worker.drain([QUEUE])
        start(worker, order, biz_key=late)
        for kernel in (worker, minder):
            TimeShift(kernel).advance(seconds=POLL_SECONDS + 1)
        page = [signal(name) for name in names]

        def end(name: str = ended) -> bool:
            return minder.supersede(workflow_id_of(name), reason="a new generation")

        def poll_then_look(kernel: Kernel = minder) -> None:
            kernel.tick()
            kernel.reconcile()

        acts: list[Any] = [
            lambda page=page: sender.deliver_signals(page),
            lambda page=page: again.deliver_signals(page[::-1]),
            lambda: worker.drain([QUEUE]),
            poll_then_look,
            end,
        ]
        first, second, _, _, is_ended = TURNS.run(acts, rng)
        for _ in range(3):
            minder.reconcile()
            worker.drain([QUEUE])
        told = list(zip(names, first, second[::-1], strict=True))
        assert [name for name, one, other in told if one and other] == [], "new twice"
        assert {waits, late} <= {name for name, one, other in told if one or other}
        assert inbox.count_documents({"status": "pending"}) == 0
        found = {name: worker.get(workflow_id_of(name)).status for name in names}
        if is_ended:
            assert found.pop(ended) is InstanceStatus.CANCELED
            assert len(calls.pop(ended)) <= 2
        assert set(found.values()) == {InstanceStatus.COMPLETED}
        ways = calls.pop(polls)
        assert ways in ([None, f"{polls}:0"], [None, "poll"])
        assert calls == {name: [None, f"{name}:0"] for name in calls}
        calls.clear()
