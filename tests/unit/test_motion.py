"""Motion: a group waits for those on their way, for nobody else, and never for long."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel.engine.motion import Motion
from kernel.store.grouping import Grouping
from tests.kit.waiting import eventually

#: So long that a wait which is not ended by others fails the test.
_LONG = 60.0


class Sent:
    """A send that notes its groups."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.groups.append(sorted(items))
        return list(items)


def _group(motion: Motion, sent: Sent) -> Grouping[int, int]:
    return Grouping(sent, most=8, others=motion)


def test_a_sender_waits_for_those_on_their_way() -> None:
    motion, sent = Motion(catch_up_seconds=_LONG), Sent()
    group = _group(motion, sent)
    motion.add(3)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(group, 1)
        eventually(lambda: motion._count == 2)
        assert sent.groups == []
        others = [pool.submit(group, 2), pool.submit(group, 3)]
        assert [each.result(10) for each in (first, *others)] == [1, 2, 3]
    assert sent.groups == [[1, 2, 3]]
    assert motion._count == 3  # all are on their way again


def test_nobody_waits_for_one_that_is_at_rest() -> None:
    motion, sent = Motion(catch_up_seconds=_LONG), Sent()
    motion.add(2)
    with motion.resting:
        assert _group(motion, sent)(1) == 1
    assert motion._count == 2


def test_one_that_never_comes_costs_the_bound_and_no_more() -> None:
    motion, sent = Motion(catch_up_seconds=0.001), Sent()
    motion.add(2)
    assert _group(motion, sent)(1) == 1
    assert sent.groups == [[1]]


def test_those_answered_are_awaited_before_the_next_group_goes() -> None:
    motion, sent = Motion(catch_up_seconds=_LONG), Sent()
    group = _group(motion, sent)
    motion.add(2)
    both = threading.Barrier(2)

    def twice(item: int) -> None:
        both.wait(10)
        group(item)
        group(item + 10)

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(twice, 1), pool.submit(twice, 2)]:
            each.result(20)
    assert sent.groups == [[1, 2], [11, 12]]


def test_an_error_of_the_send_puts_its_callers_in_motion_again() -> None:
    motion = Motion(catch_up_seconds=_LONG)

    def fails(items: Sequence[int]) -> list[int | Exception]:
        raise ValueError(items)

    motion.add(1)
    with pytest.raises(ValueError, match="1"):
        Grouping(fails, most=8, others=motion)(1)
    assert motion._count == 1


def test_a_sender_that_is_ended_while_it_waits_leaves_the_way_to_others() -> None:
    class Ended(BaseException):
        """Ends a sender from outside."""

    class Ending(Motion):
        """Ends the first sender that waits."""

        ends = True

        def await_rest(self) -> None:
            if self.ends:
                self.ends = False
                raise Ended

    group = _group(Ending(), Sent())
    with pytest.raises(Ended):
        group(1)
    assert group(2) == 2
