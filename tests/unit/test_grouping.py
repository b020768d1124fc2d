"""Grouping: lone callers send at once, those that come meanwhile go together, each is told."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from kernel.errors import StoreUnavailable
from kernel.store import grouping
from kernel.store.grouping import Grouping
from tests.kit.waiting import eventually


class Wire:
    """A send that notes its groups and can be held up."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.open = threading.Event()
        self.open.set()
        self.raises: BaseException | None = None

    def send(self, items: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(items))
        assert self.open.wait(10)
        if self.raises is not None:
            raise self.raises
        return [ValueError(item) if item < 0 else item * 10 for item in items]


def _gather(
    wire: Wire, group: Grouping[int, int], pool: ThreadPoolExecutor, items: list[int]
) -> list[Future[int]]:
    """Hold a first sender up, and let `items` gather behind it in their order."""
    wire.open.clear()
    futures = [pool.submit(group, 1)]
    eventually(lambda: wire.groups == [[1]])
    for number, item in enumerate(items, start=1):
        futures.append(pool.submit(group, item))
        eventually(partial(_has_gathered, group, number))
    return futures


def _has_gathered(group: Grouping[int, int], number: int) -> bool:
    return len(group._gathered) == number


def test_a_lone_caller_sends_at_once_and_alone() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=8)
    assert [group(1), group(2)] == [10, 20]
    assert wire.groups == [[1], [2]]


def test_what_gathers_behind_a_sender_goes_as_one_group() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=8)
    with ThreadPoolExecutor() as pool:
        futures = _gather(wire, group, pool, [2, 3, 4])
        wire.open.set()
        assert [future.result(10) for future in futures] == [10, 20, 30, 40]
    assert wire.groups == [[1], [2, 3, 4]]


def test_a_group_is_never_larger_than_allowed() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=2)
    with ThreadPoolExecutor(8) as pool:
        futures = _gather(wire, group, pool, [2, 3, 4])
        wire.open.set()
        assert [future.result(10) for future in futures] == [10, 20, 30, 40]
    assert wire.groups == [[1], [2, 3], [4]]


def test_an_answer_that_is_an_error_reaches_its_own_caller_only() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=8)
    with ThreadPoolExecutor() as pool:
        futures = _gather(wire, group, pool, [2, -3, 4])
        wire.open.set()
        assert [futures[n].result(10) for n in (0, 1, 3)] == [10, 20, 40]
        with pytest.raises(ValueError, match="-3"):
            futures[2].result(10)


def test_what_a_group_meets_is_told_to_each_and_the_next_group_still_goes() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=8)
    with ThreadPoolExecutor() as pool:
        wire.raises = StoreUnavailable("gone")
        futures = _gather(wire, group, pool, [2, 3])
        wire.open.set()
        for future in futures:
            with pytest.raises(StoreUnavailable, match="gone"):
                future.result(10)
    wire.raises = None
    assert group(5) == 50


def test_a_sender_ended_half_way_leaves_nobody_waiting() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=2)
    with ThreadPoolExecutor() as pool:
        futures = _gather(wire, group, pool, [2, 3, 4])
        wire.raises = KeyboardInterrupt()
        wire.open.set()
        told = [future.exception(10) for future in futures]
    # Each group's own sender is ended; whoever it sent for is told that the outcome is unknown.
    assert [type(one) for one in told].count(StoreUnavailable) == 1
    assert [type(one) for one in told].count(KeyboardInterrupt) == 3
    wire.raises = None
    assert group(6) == 60


def test_many_threads_get_their_own_answers() -> None:
    wire = Wire()
    group = Grouping(wire.send, most=5)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(group, range(2_000))) == [item * 10 for item in range(2_000)]
    assert sum(len(items) for items in wire.groups) == 2_000
    assert max(len(items) for items in wire.groups) <= 5


@pytest.mark.parametrize("is_its_turn", [False, True])
def test_a_caller_that_is_ended_while_it_waits_leaves_the_way_to_others(is_its_turn: bool) -> None:
    class Ended(BaseException):
        """Ends a caller from outside."""

    wire, has_gathered = Wire(), threading.Event()
    group: Grouping[int, int] = Grouping(wire.send, most=8)

    def ended_while_waiting() -> None:
        entry = grouping._Entry.__init__

        class Woken(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                assert super().wait(10) if is_its_turn else has_gathered.wait(10)
                raise Ended

        def init(self: grouping._Entry[int, int], item: int) -> None:
            entry(self, item)
            if item == 2:
                self.woken = Woken()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouping._Entry, "__init__", init)
            with pytest.raises(Ended):
                group(2)

    with ThreadPoolExecutor() as pool:
        wire.open.clear()
        first = pool.submit(group, 1)
        eventually(lambda: wire.groups == [[1]])
        ended = pool.submit(ended_while_waiting)
        eventually(partial(_has_gathered, group, 1))
        has_gathered.set()
        if not is_its_turn:
            ended.result(10)
        wire.open.set()
        ended.result(10)
        assert first.result(10) == 10
        assert not group._sending, "nobody sends, and all that come wait for it"
        assert pool.submit(group, 3).result(10) == 30
