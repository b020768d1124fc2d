"""What a child holds is told by its cells at every moment, whatever it held before and dies of."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast

import pytest

from kernel.engine.claims import LiveClaim
from kernel.keeper import ChildKeeper, ClaimSlots
from kernel.keeper.processes import Process
from kernel.keeper.slots import CLAIMS, PublishedClaim
from tests.kit.waiting import eventually

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def slots() -> ClaimSlots:
    made = ClaimSlots(2)
    made.write_beat(time.monotonic() + 3600)
    return made


def keeper_in(slots: ClaimSlots) -> ChildKeeper:
    """Return the keeper of this process in the first area; its claims need no renewal here."""
    return ChildKeeper(slots, 0, renewal=cast(Any, None), lease_ms=60_000)


def tokens(slots: ClaimSlots) -> set[str]:
    child = slots.read(0)
    return {claim.token for claim in child.claims} if child is not None else set()


def live(number: int) -> LiveClaim:
    return LiveClaim(f"wf_{number}", f"t{number}")


def test_a_claim_is_told_from_the_moment_it_is_kept(slots: ClaimSlots) -> None:
    keeper = keeper_in(slots)
    with keeper.keeping(live(1)):
        assert tokens(slots) == {"t1"}
        with keeper.keeping(live(1)):
            assert tokens(slots) == {"t1"}
        assert tokens(slots) == {"t1"}, "the block inside it was none of its own"
    assert tokens(slots) == set()
    keeper.stop()


def test_those_in_higher_cells_are_told_while_a_lower_one_is_used_again(slots: ClaimSlots) -> None:
    keeper = keeper_in(slots)
    with ExitStack() as rest:
        with keeper.keeping(live(0)):
            for number in range(1, CLAIMS):
                rest.enter_context(keeper.keeping(live(number)))
            assert len(tokens(slots)) == CLAIMS
        with keeper.keeping(live(99)):
            assert tokens(slots) == {"t99", *(f"t{number}" for number in range(1, CLAIMS))}
        assert len(tokens(slots)) == CLAIMS - 1
    assert tokens(slots) == set()
    keeper.stop()


def die_at(write: int) -> Callable[[ClaimSlots], None]:
    """Have a child die before it turns the version for the so-manieth time."""

    def live_and_die(slots: ClaimSlots) -> None:
        keeper, writes = keeper_in(slots), 0
        write_whole = ClaimSlots._write

        def may_die(self: ClaimSlots, *args: Any) -> None:
            nonlocal writes
            writes += 1
            if writes == write:
                os.kill(os.getpid(), signal.SIGKILL)
            write_whole(self, *args)

        setattr(ClaimSlots, "_write", may_die)  # noqa: B010 - this process ends with it
        with keeper.keeping(live(1)), keeper.keeping(live(2)):
            pass
        with keeper.keeping(live(3)):
            signal.pause()

    return live_and_die


#: Before each write of one child: which claims are told then. The head of each comes first.
TOLD = [set(), set(), {"t1"}, {"t1"}, {"t1", "t2"}, {"t1"}, set(), set()]


@pytest.mark.parametrize("write", range(1, len(TOLD) + 1))
def test_a_child_that_dies_between_any_two_writes_leaves_what_it_held(
    slots: ClaimSlots, write: int
) -> None:
    process = FORK.Process(target=die_at(write), args=(slots,))
    process.start()
    process.join(20)
    assert process.exitcode == -signal.SIGKILL
    child = slots.read(0)
    assert child is not None
    assert child.process.is_dead()
    assert tokens(slots) == TOLD[write - 1]
    successor = keeper_in(slots)
    assert {claim.token for claim in successor.left_behind} == TOLD[write - 1]
    assert tokens(slots) == set()


def test_a_child_with_every_cell_in_use_leaves_them_all_to_its_successor(slots: ClaimSlots) -> None:
    def hold_all(slots: ClaimSlots) -> None:
        keeper = keeper_in(slots)
        with ExitStack() as stack:
            for number in range(CLAIMS):
                stack.enter_context(keeper.keeping(live(number)))
            signal.pause()

    process = FORK.Process(target=hold_all, args=(slots,))
    process.start()
    try:
        eventually(lambda: len(tokens(slots)) == CLAIMS, 20, "not all were told")
    finally:
        process.kill()
        process.join()
    assert len(keeper_in(slots).left_behind) == CLAIMS


@pytest.mark.parametrize("successor", [Process(4712, 99), Process(4711, 100)])
def test_a_look_during_which_another_came_says_nothing(
    slots: ClaimSlots, monkeypatch: pytest.MonkeyPatch, successor: Process
) -> None:
    """Also where its pid is that of the dead."""
    claim = PublishedClaim("wf_0", "t0", 1.0, None)
    slots.publish(0, Process(4711, 99), [claim])
    meanwhile(monkeypatch, lambda: slots.publish(0, successor, [claim]))
    assert slots.read(0) is None


def test_a_child_that_takes_a_claim_during_a_look_is_seen(
    slots: ClaimSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = PublishedClaim("wf_0", "t0", 1.0, None)
    me = Process(4711, 99)
    slots.publish(0, me, [claim], taken=1)
    meanwhile(monkeypatch, lambda: slots.publish_head(0, me, taken=2, cells=2))
    assert tokens(slots) == {"t0"}


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Have something happen when the next look comes to a cell."""
    cell_of = ClaimSlots._cell

    def told(self: ClaimSlots, index: int, cell: int) -> int:
        monkeypatch.setattr(ClaimSlots, "_cell", cell_of)
        happens()
        return cell_of(self, index, cell)

    monkeypatch.setattr(ClaimSlots, "_cell", told)
