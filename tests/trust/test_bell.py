"""One bell wakes everybody that is needed, and few messages do."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import Kernel
from tests.kit.kernels import MakeKernel, definition, start
from tests.trust import bell_model
from tests.trust.bell_model import State

pytestmark = pytest.mark.timeout(240)

CHILDREN = 4
PUSHES = 600

Moves = Callable[[State], Iterator[State]]


def reachable(first: State, *moves: Moves) -> set[State]:
    """Return every state that some order of these moves leads to."""
    found, open_states = {first}, [first]
    while open_states:
        state = open_states.pop()
        for move in moves:
            fresh = {after for after in move(state) if after not in found}
            found |= fresh
            open_states.extend(fresh)
    return found


@pytest.mark.parametrize("children", [1, 2, 3])
def test_no_order_of_steps_forgets_a_due_candidate_beside_an_idle_child(children: int) -> None:
    states = reachable(bell_model.beginning(candidates=3, children=children), bell_model.steps)
    assert len(states) > 100
    assert [state for state in states if bell_model.is_forgotten(state)] == []


def test_after_any_fault_the_second_hand_brings_everything_to_its_end() -> None:
    states = reachable(
        bell_model.beginning(candidates=2, children=2), bell_model.steps, bell_model.faults
    )
    assert any(bell_model.is_forgotten(state) for state in states), "no fault that matters"
    for state in states:
        after = _to_rest(state)
        for _ in range(2):
            after = _to_rest(bell_model.repaired(after))
        assert bell_model.is_finished(after), state


def _to_rest(state: State) -> State:
    """Let everybody go on until nothing is left to do."""
    while True:
        # The bell's own end is no progress; everything else is.
        moves = [s for s in bell_model.steps(state) if (s.publishers, s.children) != _who(state)]
        if not moves:
            return state
        state = moves[0]


def _who(state: State) -> tuple[object, object]:
    return state.publishers, state.children


class Children:
    """A worker's children as threads: each takes one message at a time and drains."""

    def __init__(self) -> None:
        self.sent = 0
        self._messages: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def ring(self, name: str) -> None:
        self.sent += 1
        self._messages.put(name)

    def run(self, kernels: list[Kernel]) -> None:
        self._threads = [threading.Thread(target=self._serve, args=(each,)) for each in kernels]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for _ in self._threads:
            self._messages.put(None)
        for thread in self._threads:
            thread.join(60)

    def _serve(self, kernel: Kernel) -> None:
        while (name := self._messages.get()) is not None:
            kernel.drain([name])


def test_many_pushes_make_few_messages(
    make_kernel: MakeKernel, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> None:
    children = Children()
    quick = definition("bell.quick", {"only": lambda _: None})
    kernels = [make_kernel(quick, ring=children.ring) for _ in range(CHILDREN + 1)]
    publisher = kernels.pop()
    # The lanes are filled first, as after a burst: then every claim could ring.
    ids = cloned(publisher, mongo_client[mongo_db_name], start(publisher, quick), PUSHES)
    began = time.monotonic()
    for workflow_id in ids:
        instance = publisher.get(workflow_id)
        publisher.hints.place(instance, instance.claimable_time)
    children.run(kernels)
    try:
        left = {"status": "running"}
        until = time.monotonic() + 120
        while mongo_client[mongo_db_name].workflow_instances.find_one(left):
            assert time.monotonic() < until, "the backlog was never worked off"
            publisher.tick()
    finally:
        children.stop()
    seconds = time.monotonic() - began
    assert children.sent <= 2 * CHILDREN + 10 + seconds / 2


def cloned(kernel: Kernel, database: Any, workflow_id: str, count: int) -> list[str]:
    """Insert copies of an instance that nobody has been told of; return their ids and its own."""
    original = database.workflow_instances.find_one({"workflow_id": workflow_id}, {"_id": 0})
    ids = [f"wf_{number:032x}" for number in range(count)]
    database.workflow_instances.insert_many(
        [
            {**original, "workflow_id": each, "biz_key": each, "priority": number % 4}
            for number, each in enumerate(ids)
        ]
    )
    return [workflow_id, *ids]
