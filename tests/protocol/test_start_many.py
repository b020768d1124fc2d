"""A page of rounds answers and does what its items would, one by one, in a few commands."""

from collections.abc import Callable, Sequence
from typing import Any

import pydantic
import pytest

from kernel import (
    Definition,
    InvalidValue,
    InvariantViolation,
    Kernel,
    NonRetryable,
    Plan,
    Priority,
    StartItem,
    StartResult,
    Step,
    StoreUnavailable,
    UnknownWorkflow,
    ValueTooLarge,
    limits,
    workflow_id_of,
)
from kernel.store import GroupedInstances, batches
from kernel.testing import run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.waiting.interleaving import TURNS, interleavings


def act(ctx: Any) -> Any:
    """Fail in the rounds that are to be replayed."""
    if ctx.input == "fail":
        raise NonRetryable("on purpose")
    return ctx.input


ORDER = definition("test.many", {"a": act})
OTHER = Plan("test.many", queue=QUEUE, steps=["b"])
StartAll = Callable[[Kernel, Sequence[StartItem]], list[StartResult]]


def one_by_one(kernel: Kernel, items: Sequence[StartItem]) -> list[StartResult]:
    return [
        kernel.start_or_resume(
            ORDER.plan,
            biz_key=item.biz_key,
            input=item.input,
            fencing_token=item.fencing_token,
            priority=item.priority,
        )
        for item in items
    ]


def as_a_page(kernel: Kernel, items: Sequence[StartItem]) -> list[StartResult]:
    return kernel.start_many(ORDER.plan, items)


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("start_all", [one_by_one, as_a_page])
def test_a_mixed_page_is_answered_and_acted_on_as_its_items_one_by_one(
    make_kernel: MakeKernel, start_all: StartAll, with_redis: bool
) -> None:
    kernel = make_kernel(ORDER, with_redis=with_redis)
    for biz_key, value in (("failed", "fail"), ("failed:2", "fail"), ("done", 1)):
        start(kernel, ORDER, value, biz_key=biz_key)
    run_until_idle(kernel, [QUEUE])
    start(kernel, ORDER, biz_key="runs")
    start(kernel, ORDER, biz_key="late", fencing_token=3)
    page = [
        StartItem("new", {"n": [1, "$x", {"$ref": 1}]}, priority=Priority.REALTIME),
        StartItem("new", "another input"),
        StartItem("new", fencing_token=2),
        StartItem("failed", "again", 2),
        StartItem("failed", "again", 2),
        StartItem("failed:2", "fail", 1),
        StartItem("done", 1),
        StartItem("done", 1, 2),
        StartItem("runs", priority=Priority.REALTIME),
        StartItem("runs", fencing_token=2),
        StartItem("late", fencing_token=2),
        StartItem("other", 7, 5),
    ]
    answers = start_all(kernel, page)
    assert [(one.reason, one.activated, one.accepted) for one in answers] == [
        ("created", True, True),
        ("registered", False, True),
        ("busy", False, False),
        ("replayed", True, True),
        ("registered", False, True),
        ("registered", False, True),
        ("registered", False, True),
        ("closed", False, False),
        ("registered", False, True),
        ("busy", False, False),
        ("stale_round", False, False),
        ("created", True, True),
    ]
    assert [one.workflow_id for one in answers] == [workflow_id_of(one.biz_key) for one in page]
    assert kernel.get(workflow_id_of("runs")).priority is Priority.REALTIME
    run_until_idle(kernel, [QUEUE])
    found = {one.biz_key: one for one in kernel.list_instances()}
    assert {key: (one.output, one.fencing_token) for key, one in found.items()} == {
        "new": ({"a": {"n": [1, "$x", {"$ref": 1}]}}, 1),
        "failed": ({"a": "again"}, 2),
        "failed:2": ({}, 1),
        "done": ({"a": 1}, 1),
        "runs": ({"a": None}, 1),
        "late": ({"a": None}, 3),
        "other": ({"a": 7}, 5),
    }
    assert found["new"].priority is Priority.REALTIME


def test_what_a_page_creates_is_stored_as_a_single_call_stores_it(
    make_kernel: MakeKernel, instances: Any
) -> None:
    kernel = make_kernel(ORDER)
    value: object = {"a.b": None, "~": [{}], "é": 2**62}
    one_by_one(kernel, [StartItem("single", value, 4, Priority.DISTRIBUTION)])
    (told,) = as_a_page(kernel, [StartItem("paged", value, 4, Priority.DISTRIBUTION)])
    single, paged = (instances.find_one({"biz_key": key}) for key in ("single", "paged"))
    own = {"_id", "biz_key", "workflow_id", "claimable_time", "created_at", "updated_at"}
    own |= {"round_started_at"}
    assert list(single.keys() - own) == list(paged.keys() - own)
    assert {k: v for k, v in single.items() if k not in own} == {
        k: v for k, v in paged.items() if k not in own
    }
    assert kernel.get(told.workflow_id) == told.instance


def test_more_than_one_bulk_holds_is_registered_in_several(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PAGE_WRITES", 7)
    rung: list[str] = []
    kernel = make_kernel(ORDER, ring=rung.append)
    answers = kernel.start_many(ORDER.plan, [StartItem(f"k{n}", n) for n in range(20)])
    assert all(one.activated for one in answers)
    assert rung == [QUEUE], "one bell for all of them"
    assert run_until_idle(kernel, [QUEUE]) == 20
    assert kernel.start_many(ORDER.plan, []) == []


class Strict(pydantic.BaseModel):
    """An input model."""

    n: int


STRICT = Definition(
    Plan("test.strict", queue=QUEUE, steps=["a"], input=Strict), steps={"a": Step(act)}
)
BAD: list[tuple[Any, type[InvalidValue], str]] = [
    (StartItem("", {"n": 1}), InvalidValue, "biz_key"),
    (StartItem("bad", {"n": "x"}), InvalidValue, r"\$\.n"),
    (StartItem("bad", {"n": 1}, 0), InvalidValue, "fencing_token"),
    (StartItem("bad", {"n": 1}, 1, 9), InvalidValue, "priority"),
    (StartItem("b" * 600, {"n": 1}), ValueTooLarge, "biz_key"),
    ({"biz_key": "bad"}, InvalidValue, "StartItem"),
]


@pytest.mark.parametrize(("bad", "kind", "word"), BAD, ids=lambda value: str(value)[:40])
def test_one_bad_item_refuses_its_page_before_anything_is_written(
    make_kernel: MakeKernel, instances: Any, bad: Any, kind: type[InvalidValue], word: str
) -> None:
    kernel = make_kernel(STRICT)
    with pytest.raises(kind, match=word) as refused:
        kernel.start_many(STRICT.plan, [StartItem("good", {"n": 1}), bad])
    assert "items[1]" in str(refused.value)
    assert instances.count_documents({}) == 0


def test_a_plan_that_is_not_registered_here_is_refused(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    with pytest.raises(UnknownWorkflow, match="other steps"):
        kernel.start_many(OTHER, [StartItem("k")])


def test_a_page_that_broke_off_is_registered_by_its_repeat(
    make_kernel: MakeKernel, instances: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = make_kernel(ORDER)
    page = [StartItem(f"k{n}", n) for n in range(6)]
    create_all = GroupedInstances.create_all

    def cut_short(self: GroupedInstances, changes: Any) -> Any:
        create_all(self, changes[:2])
        raise StoreUnavailable("the connection broke in the middle")

    monkeypatch.setattr(GroupedInstances, "create_all", cut_short)
    with pytest.raises(StoreUnavailable):
        kernel.start_many(ORDER.plan, page)
    monkeypatch.undo()
    assert instances.count_documents({}) == 2
    reasons = [one.reason for one in kernel.start_many(ORDER.plan, page)]
    assert reasons == ["registered"] * 2 + ["created"] * 4
    kernel.reconcile()
    assert run_until_idle(kernel, [QUEUE]) == 6, "those without a hint were found"


def test_a_bulk_that_is_not_confirmed_whole_is_told_as_unavailable() -> None:
    late = {"index": 0, "code": 11602, "errmsg": "stepping down"}
    taken: dict[str, Any] = {"writeErrors": [{"index": n, "code": 11000} for n in (3, 5)]}
    for unclear in (
        {"writeConcernErrors": [{"code": 64, "errmsg": "slow"}]},
        {"writeErrors": [late, *taken["writeErrors"]]},
    ):
        with pytest.raises(StoreUnavailable):
            batches.duplicates_of(unclear)
    with pytest.raises(InvariantViolation, match="too large"):
        batches.duplicates_of({"writeErrors": [{"index": 0, "code": 121, "errmsg": "too large"}]})
    assert batches.duplicates_of(taken) == {3, 5}


def test_racing_pages_create_each_instance_once(make_kernel: MakeKernel, instances: Any) -> None:
    one, other = make_kernel(ORDER, with_redis=False), make_kernel(ORDER, with_redis=False)
    for number, rng in enumerate(interleavings(default=20)):
        page = [StartItem(f"{number}:{n}", n) for n in range(4)]
        acts = [
            lambda page=page: one.start_many(ORDER.plan, page),
            lambda page=page: other.start_many(ORDER.plan, page[::-1]),
            lambda page=page: one_by_one(other, page[:2]),
        ]
        first, second, third = TURNS.run(acts, rng)
        answers = [*first, *second, *third]
        winners = [answer.instance.biz_key for answer in answers if answer.activated]
        assert sorted(winners) == [item.biz_key for item in page]
        assert all(answer.accepted for answer in answers)
        one.drain([QUEUE])
    assert instances.count_documents({"status": {"$ne": "completed"}}) == 0
