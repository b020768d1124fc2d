"""What a signal does that comes early, late, twice, malformed, or for somebody else."""

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
    workflow_id_of,
)
from kernel.engine import committing
from kernel.protocol import signaling
from kernel.store import SignalInbox
from kernel.testing import run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

WORKFLOW_ID = workflow_id_of("test:1")


def wait(ctx: ActivityContext) -> Any:
    """Wait once for what the input names; give what woke it."""
    if ctx.resume is not None:
        return ctx.resume.signal_id
    return WaitForSignal("s", wait_key="k", generation=(ctx.input or {}).get("generation", 0))


ORDER = definition("test.signal", {"a": wait})


def ring(kernel: Kernel, signal_id: str = "one", **identity: Any) -> bool:
    told: dict[str, Any] = {"workflow_id": WORKFLOW_ID, "signal_type": "s", "wait_key": "k"}
    return kernel.deliver_signal(**(told | identity), signal_id=signal_id)


@pytest.fixture
def inbox(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Any:
    return mongo_client[mongo_db_name]["workflow_signals"]


def statuses(inbox: Any) -> dict[str, str]:
    return {row["signal_id"]: row["status"] for row in inbox.find()}


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_signal_wakes_who_waits_for_it(
    make_kernel: MakeKernel, inbox: Any, with_redis: bool
) -> None:
    kernel = make_kernel(ORDER, with_redis=with_redis)
    start(kernel, ORDER)
    run_until_idle(kernel, [QUEUE])
    assert ring(kernel) is True
    awake = kernel.get(WORKFLOW_ID)
    assert (awake.status, awake.waits) == (InstanceStatus.RUNNING, ())
    assert awake.steps["a"].woken_by == ("one",)
    kernel.drain([QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert instance.output == {"a": "one"}
    assert (instance.steps["a"].attempt, instance.steps["a"].woken_by) == (1, ())
    assert statuses(inbox) == {"one": "matched"}


def test_an_early_signal_ends_the_wait_as_soon_as_it_begins(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    start(kernel, ORDER)
    assert ring(kernel) is True
    assert statuses(inbox) == {"one": "pending"}
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "one"}
    assert statuses(inbox) == {"one": "matched"}


def test_a_signal_of_a_workflow_nobody_registered_yet_is_kept_for_it(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    assert ring(kernel) is True
    assert kernel.reconcile().found["pending_signals"] == 0
    assert statuses(inbox) == {"one": "pending"}
    assert "expires_at" not in inbox.find_one()
    start(kernel, ORDER)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "one"}


def test_a_signal_of_an_ended_workflow_is_closed_and_says_so(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    start(kernel, ORDER)
    kernel.supersede(WORKFLOW_ID, reason="obsolete")
    assert ring(kernel) is False
    assert statuses(inbox) == {"one": "unmatched"}
    assert ring(kernel) is False
    assert inbox.find_one()["expires_at"] > inbox.find_one()["created_at"]


def test_signals_left_over_by_a_workflow_are_closed_by_reconciliation(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    start(kernel, ORDER)
    ring(kernel, "other", wait_key="nobody waits for this")
    ring(kernel)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.COMPLETED
    assert kernel.reconcile().found["pending_signals"] == 1
    assert statuses(inbox) == {"other": "unmatched", "one": "matched"}


def test_a_late_signal_of_one_generation_never_wakes_the_next(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    start(kernel, ORDER, {"generation": 2})
    run_until_idle(kernel, [QUEUE])
    for number in (0, 1, 3):
        assert ring(kernel, f"g{number}", generation=number) is True
    kernel.reconcile()
    assert run_until_idle(kernel, [QUEUE]) == 0
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.WAITING
    ring(kernel, "g2", generation=2)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "g2"}


def test_a_slow_hand_never_wakes_the_next_step_with_a_signal_that_is_spent(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    """Two steps wait for the same thing in turn; somebody thinks its signal still pending."""
    twice = definition("signal.twice", {"a": wait, "b": wait})
    kernel = make_kernel(twice)
    start(kernel, twice)
    run_until_idle(kernel, [QUEUE])
    ring(kernel, "one")
    run_until_idle(kernel, [QUEUE])
    before = kernel.get(WORKFLOW_ID)
    assert [state.status.value for state in before.steps.values()] == ["completed", "waiting"]
    believed = Signal(
        signal_id="one", workflow_id=WORKFLOW_ID, signal_type="s", wait_key="k", generation=0
    )
    assert signaling.is_awaited(before, believed)
    kernel._parts.delivery.match([believed])
    assert kernel.get(WORKFLOW_ID) == before
    assert statuses(inbox) == {"one": "matched"}


@pytest.mark.parametrize(
    "identity",
    [{"signal_type": "S"}, {"wait_key": "K"}, {"workflow_id": workflow_id_of("test:2")}],
)
def test_a_signal_wakes_nobody_whose_wait_differs_in_one_part(
    make_kernel: MakeKernel, identity: dict[str, str]
) -> None:
    kernel = make_kernel(ORDER)
    start(kernel, ORDER)
    run_until_idle(kernel, [QUEUE])
    assert ring(kernel, **identity) is True
    assert kernel.get(WORKFLOW_ID).status is InstanceStatus.WAITING


def test_a_signal_is_found_behind_however_many_nobody_waits_for(
    make_kernel: MakeKernel, inbox: Any
) -> None:
    kernel = make_kernel(ORDER)
    for number in range(250):
        ring(kernel, f"noise-{number}", wait_key="noise")
    ring(kernel)
    start(kernel, ORDER)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "one"}


def test_a_sibling_that_waits_for_a_later_generation_does_not_close_a_signal(
    make_kernel: MakeKernel,
) -> None:
    def of(generation: int) -> Any:
        def wait_for(ctx: ActivityContext) -> Any:
            return "on" if ctx.resume else WaitForSignal("s", wait_key="k", generation=generation)

        return wait_for

    graph = definition("test.both", {"a": of(1), "b": of(2)}, depends_on={"a": [], "b": []})
    kernel = make_kernel(graph)
    start(kernel, graph)
    run_until_idle(kernel, [QUEUE])
    ring(kernel, "first", generation=1)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "on"}


def test_one_signal_wakes_a_step_once_even_if_it_could_not_be_marked(
    make_kernel: MakeKernel, inbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str | None] = []

    def waits_again(ctx: ActivityContext) -> Any:
        calls.append(ctx.resume.signal_id if ctx.resume else None)
        return WaitForSignal("s", wait_key="k")

    order = definition("test.again", {"a": waits_again})
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    monkeypatch.setattr(SignalInbox, "close", lambda *_: None)
    ring(kernel)
    run_until_idle(kernel, [QUEUE])
    assert statuses(inbox) == {"one": "pending"}
    for _ in range(3):
        ring(kernel)
        kernel.reconcile()
        run_until_idle(kernel, [QUEUE])
    monkeypatch.undo()
    assert calls == [None, "one"]
    assert kernel.reconcile().found["pending_signals"] == 1
    assert statuses(inbox) == {"one": "matched"}


def test_a_step_is_not_called_before_what_woke_it_is_marked(
    make_kernel: MakeKernel, inbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_call: list[str] = []

    def looks(ctx: ActivityContext) -> Any:
        if ctx.resume is None:
            return WaitForSignal("s", wait_key="k")
        at_call.append(statuses(inbox)["one"])
        return "done"

    order = definition("test.marked", {"a": looks})
    kernel = make_kernel(order)
    start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    close, failures = SignalInbox.close, iter(range(3))

    def fails_at_first(self: SignalInbox, ids: Any, status: str) -> None:
        if next(failures, None) is not None:
            raise StoreUnavailable("away")
        close(self, ids, status)

    monkeypatch.setattr(SignalInbox, "close", fails_at_first)
    monkeypatch.setattr(committing, "_PAUSES", (0.0,))
    with pytest.raises(StoreUnavailable):
        ring(kernel)
    run_until_idle(kernel, [QUEUE])
    assert at_call == ["matched"]


MALFORMED: list[dict[str, Any]] = [
    {"workflow_id": "wf_1"},
    {"workflow_id": "wf_" + "G" * 32},
    {"workflow_id": WORKFLOW_ID + "\n"},
    {"workflow_id": WORKFLOW_ID.upper()},
    {"workflow_id": None},
    {"workflow_id": 7},
    {"workflow_id": ""},
    {"workflow_id": "x" * 100_000},
    {"signal_type": ""},
    {"signal_type": "s" * 201},
    {"signal_type": b"s"},
    {"wait_key": "k\0"},
    {"wait_key": "\ud800"},
    {"wait_key": {"$gt": ""}},
    {"wait_key": "k" * 1_000_000},
    {"signal_id": ""},
    {"signal_id": None},
    {"signal_id": "i" * 201},
    {"signal_id": ["one"]},
    {"generation": -1},
    {"generation": 2**63},
    {"generation": "2"},
    {"generation": 2.0},
    {"generation": True},
    {"generation": None},
]


@pytest.mark.parametrize("part", MALFORMED, ids=lambda part: str(part)[:40])
def test_a_malformed_signal_is_refused_in_words_and_nothing_is_stored(
    make_kernel: MakeKernel, inbox: Any, part: dict[str, Any]
) -> None:
    kernel = make_kernel(ORDER)
    with pytest.raises(InvalidValue) as refused:
        ring(kernel, **part)
    assert next(iter(part)) in str(refused.value)
    assert len(str(refused.value)) < 500
    assert inbox.count_documents({}) == 0


@pytest.mark.parametrize("text", ["$k", "a.b", "$$NOW", "{}", "ключ 🔑", "k" * 100])
def test_any_text_is_a_wait_key(make_kernel: MakeKernel, text: str) -> None:
    def waits(ctx: ActivityContext) -> Any:
        return "on" if ctx.resume else WaitForSignal(text, wait_key=text, generation=2**62)

    order = definition("test.text", {"a": waits})
    kernel = make_kernel(order, with_redis=False)
    start(kernel, order)
    kernel.drain([QUEUE])
    ring(kernel, text, signal_type=text, wait_key=text, generation=2**62)
    kernel.drain([QUEUE])
    assert kernel.get(WORKFLOW_ID).output == {"a": "on"}


def test_a_signal_id_belongs_to_one_wait(make_kernel: MakeKernel, inbox: Any) -> None:
    kernel = make_kernel(ORDER)
    ring(kernel)
    with pytest.raises(InvalidValue, match="id of its own"):
        ring(kernel, generation=1)
    assert inbox.count_documents({}) == 1
