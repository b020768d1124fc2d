"""The face of capacity: limits changed live by people, and every bad input told what to do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pymongo import MongoClient

import kernel as face
from kernel import InvalidValue, Kernel, ResourceStatus, RevisionConflict, Step
from kernel.errors import DefinitionError
from kernel.testing import TimeShift

R = "web_crawler"
NAN, INFINITE = float("nan"), float("inf")


def test_a_resource_nobody_limited_is_unlimited_at_revision_0(kernel: Kernel) -> None:
    status = kernel.capacity.status(R)
    assert (status.revision, status.max_concurrency, status.max_starts_per_second) == (
        0,
        None,
        None,
    )
    assert (status.used, status.waiting, status.granted, status.refused) == (0, 0, 0, 0)
    assert kernel.capacity.resources() == []


def test_what_is_not_named_stays_and_0_is_unlimited(kernel: Kernel) -> None:
    set_limit = kernel.capacity.set_limit
    set_limit(R, max_concurrency=8, max_starts_per_second=2.5)
    status = set_limit(R, max_concurrency=4)
    assert (status.max_concurrency, status.max_starts_per_second) == (4, 2.5)
    status = set_limit(R, max_starts_per_second=0)
    assert (status.max_concurrency, status.max_starts_per_second) == (4, None)
    status = set_limit(R, max_concurrency=None)
    assert (status.max_concurrency, status.revision) == (None, 4)


def test_every_change_keeps_who_why_and_what(kernel: Kernel) -> None:
    kernel.capacity.set_limit(R, max_concurrency=8, by="ann", reason="launch")
    kernel.capacity.pause(R, by="bob", reason="they are down")
    kernel.capacity.resume(R, by="bob")
    kernel.capacity.cooldown(R, seconds=5)
    history = kernel.capacity.status(R).history
    assert [(e.by, e.reason) for e in history] == [
        ("ann", "launch"),
        ("bob", "they are down"),
        ("bob", ""),
        ("", ""),
    ]
    assert [list(e.change) for e in history] == [
        ["max_concurrency"],
        ["paused"],
        ["paused"],
        ["cooldown_until"],
    ]


def test_the_history_is_bounded(kernel: Kernel) -> None:
    for n in range(1, 55):
        kernel.capacity.set_limit(R, max_concurrency=n)
    history = kernel.capacity.status(R).history
    assert len(history) == 50
    assert history[-1].change == {"max_concurrency": 54}


def test_an_override_says_until_when_and_falls_back(kernel: Kernel) -> None:
    kernel.capacity.set_limit(R, max_concurrency=8)
    status = kernel.capacity.set_limit(R, max_concurrency=1, expires_in=timedelta(minutes=1))
    assert status.override_until is not None
    assert status.max_concurrency == 1
    TimeShift(kernel).advance(seconds=61)
    status = kernel.capacity.status(R)
    assert (status.max_concurrency, status.override_until) == (8, None)


def test_a_stale_change_is_refused_with_the_current_revision(kernel: Kernel) -> None:
    seen = kernel.capacity.set_limit(R, max_concurrency=8)
    changes: list[Callable[..., ResourceStatus]] = [
        lambda **kw: kernel.capacity.set_limit(R, max_concurrency=1, **kw),
        lambda **kw: kernel.capacity.pause(R, **kw),
        lambda **kw: kernel.capacity.resume(R, **kw),
        lambda **kw: kernel.capacity.cooldown(R, seconds=1, **kw),
    ]
    for change in changes:
        with pytest.raises(RevisionConflict, match=f"revision {seen.revision}") as refused:
            change(if_revision=seen.revision + 7)
        assert refused.value.revision == seen.revision
        seen = change(if_revision=seen.revision)


def test_a_cooldown_ends_and_says_when(kernel: Kernel) -> None:
    status = kernel.capacity.cooldown(R, seconds=30)
    assert status.cooldown_until is not None
    assert status.next_start_at == status.cooldown_until
    assert kernel.capacity.cooldown(R, seconds=5).cooldown_until == status.cooldown_until
    ended = kernel.capacity.cooldown(R, seconds=0)
    assert (ended.cooldown_until, ended.next_start_at) == (None, None)


@pytest.mark.parametrize("value", [-1, True, False, 1.5, "8", NAN, 10**9, []])
def test_a_concurrency_that_is_none_is_refused(kernel: Kernel, value: Any) -> None:
    with pytest.raises(InvalidValue, match="unlimited"):
        kernel.capacity.set_limit(R, max_concurrency=value)
    assert kernel.capacity.status(R).revision == 0


@pytest.mark.parametrize("value", [-0.5, True, NAN, INFINITE, -INFINITE, "2", 1e9, 1e-9, []])
def test_a_rate_that_is_none_is_refused(kernel: Kernel, value: Any) -> None:
    with pytest.raises(InvalidValue, match="unlimited"):
        kernel.capacity.set_limit(R, max_starts_per_second=value)
    assert kernel.capacity.status(R).revision == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.set_limit(R),
        lambda c: c.set_limit(R, max_concurrency=1, expires_in=0),
        lambda c: c.set_limit(R, max_concurrency=1, expires_in=-5),
        lambda c: c.set_limit(R, max_concurrency=1, expires_in=NAN),
        lambda c: c.set_limit(R, max_concurrency=1, by=7),
        lambda c: c.set_limit(R, max_concurrency=1, reason=None),
        lambda c: c.set_limit(R, max_concurrency=1, if_revision=-1),
        lambda c: c.set_limit(R, max_concurrency=1, if_revision=True),
        lambda c: c.cooldown(R, seconds=-1),
        lambda c: c.cooldown(R, seconds=INFINITE),
        lambda c: c.cooldown(R, seconds="5"),
    ],
)
def test_other_bad_input_is_refused(kernel: Kernel, call: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidValue):
        call(kernel.capacity)


@pytest.mark.parametrize(
    "name", ["", "a b", "x" * 201, "ü", "a/b", "$x", 7, None, "a\n", ".", "..", "_:@"]
)
def test_a_name_that_is_none_is_refused_everywhere(kernel: Kernel, name: Any) -> None:
    capacity = kernel.capacity
    calls: list[Callable[[], object]] = [
        lambda: capacity.set_limit(name, max_concurrency=1),
        lambda: capacity.pause(name),
        lambda: capacity.resume(name),
        lambda: capacity.cooldown(name, seconds=1),
        lambda: capacity.status(name),
    ]
    for call in calls:
        with pytest.raises(InvalidValue, match="resource"):
            call()
    if name is not None:
        with pytest.raises(DefinitionError, match="resource"):
            Step(lambda _: None, traffic_resource=[name])


@pytest.mark.parametrize("name", ["a", "tenant_work:t1", "a.b-c@d:E_9", "x" * 200, ".7", "..a"])
def test_a_usual_name_is_taken(kernel: Kernel, name: str) -> None:
    kernel.capacity.set_limit(name, max_concurrency=1)
    assert kernel.capacity.resources() == [name]


def test_what_was_stored_under_no_name_is_not_listed(
    kernel: Kernel, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> None:
    kernel.capacity.pause("a")
    mongo_client[mongo_db_name]["workflow_capacity"].insert_many([{"_id": ".."}, {"_id": 7}])
    assert kernel.capacity.resources() == ["a"]


def test_text_of_people_is_kept_as_it_is_and_cut(kernel: Kernel) -> None:
    kernel.capacity.pause(R, by="$by", reason="a.b $NOW \ud800 " + "é" * 5000)
    entry = kernel.capacity.status(R).history[-1]
    assert entry.by == "$by"
    assert entry.reason.startswith("a.b $NOW")
    assert len(entry.reason.encode()) <= 4096


def test_the_models_are_part_of_the_face() -> None:
    for name in ("ResourceStatus", "Holder", "Waiter", "LimitChange", "RevisionConflict"):
        assert name in face.__all__
    assert len(set(face.__all__)) == len(face.__all__)
