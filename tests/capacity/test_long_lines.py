"""Whoever joins a long line is not next: it is looked at a moment later, for all together."""

from typing import Any

import pytest

from kernel import Definition, Kernel, Step
from kernel.engine import sightings
from kernel.protocol.resources import PermitOwner
from kernel.store import CapacityStore
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

R = "psp"
OTHER = PermitOwner("other", "s", "other")


@pytest.fixture
def of() -> Definition:
    return definition("test.long", {"a": Step(lambda _: None, traffic_resource=R)})


def full(kernel: Kernel) -> CapacityStore:
    """Let somebody else hold the only permit."""
    kernel.capacity.set_limit(R, max_concurrency=1)
    store = kernel._parts.permits.store
    assert store.acquire(R, [OTHER], lease_ms=3_600_000).holds(OTHER)
    return store


def looks(commands: CommandLog) -> int:
    return sum("aggregate" in command for command in commands.on("workflow_capacity"))


@pytest.mark.parametrize("slots", [1, 4])
def test_many_that_join_a_long_line_are_not_looked_for_one_by_one(
    make_kernel: MakeKernel, of: Definition, commands: CommandLog, slots: int
) -> None:
    kernel = make_kernel(of, slots_per_child=slots)
    full(kernel)
    for number in range(40):
        start(kernel, of, biz_key=f"before:{number}")
    kernel.drain([QUEUE])
    for number in range(100):
        start(kernel, of, biz_key=f"after:{number}")
    commands.clear()
    kernel.drain([QUEUE])
    assert kernel.capacity.status(R).waiting == 140
    assert looks(commands) < 50


def test_refusals_nobody_asked_for_are_told_by_the_look(
    make_kernel: MakeKernel, of: Definition
) -> None:
    """This process has nothing else to write of the resource."""
    kernel = make_kernel(of)
    full(kernel)
    for number in range(60):
        start(kernel, of, biz_key=f"{number}")
    kernel.drain([QUEUE])
    eventually(lambda: kernel.capacity.status(R).refused == 60, 5, "refusals were forgotten")


def test_a_place_that_came_free_meanwhile_is_found_without_a_tick(
    make_kernel: MakeKernel, of: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "_LONG_LINE", 1)
    monkeypatch.setattr(sightings, "_BELIEVED_SECONDS", 60.0)
    kernel = make_kernel(of)
    store = full(kernel)
    first = start(kernel, of, biz_key="first")
    kernel.drain([QUEUE])
    store.release(R, [OTHER])  # as somebody does who dies of it: nothing is handed on
    start(kernel, of, biz_key="second")
    kernel.drain([QUEUE])
    eventually(lambda: kernel.drain([QUEUE]), 5, "the place stayed free")
    eventually(lambda: kernel.get(first).status.is_terminal, 5, "another was handed on to")


def test_a_short_line_is_looked_at_at_once(
    make_kernel: MakeKernel, of: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same thread: nothing is left to what runs beside it."""
    kernel = make_kernel(of)
    store = full(kernel)
    kernel._parts.permits.handing_on.close()
    exchange = CapacityStore.exchange

    def released_after(self: CapacityStore, resource: str, **values: Any) -> object:
        state = exchange(self, resource, **values)
        if values.get("wanted"):
            monkeypatch.undo()
            store.release(R, [OTHER])
        return state

    monkeypatch.setattr(CapacityStore, "exchange", released_after)
    workflow = start(kernel, of)
    kernel.drain([QUEUE])
    assert kernel.get(workflow).status.is_terminal
