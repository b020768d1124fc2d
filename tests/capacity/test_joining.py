"""What the look does that is postponed for those who join a long line, and what it leaves alone."""

from datetime import timedelta

import pytest

from kernel import Definition, Kernel, Step
from kernel.engine import sightings
from kernel.engine.handing_on import HandingOn
from kernel.protocol.resources import PermitOwner, ResourceState
from kernel.store import CapacityStore
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

R = "psp"
OTHER = PermitOwner("other", "s", "other")


@pytest.fixture(autouse=True)
def _long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen is believed until something else is."""
    monkeypatch.setattr(sightings, "_BELIEVED_SECONDS", 60.0)


@pytest.fixture
def of() -> Definition:
    return definition("test.joining", {"a": Step(lambda _: None, traffic_resource=R)})


@pytest.fixture
def kernel(make_kernel: MakeKernel, of: Definition) -> Kernel:
    return make_kernel(of)


def parts(kernel: Kernel) -> tuple[CapacityStore, HandingOn]:
    return kernel._parts.permits.store, kernel._parts.permits.handing_on


def full(kernel: Kernel, resource: str = R) -> CapacityStore:
    kernel.capacity.set_limit(resource, max_concurrency=1)
    store, _ = parts(kernel)
    assert store.acquire(resource, [OTHER], lease_ms=3_600_000).holds(OTHER)
    return store


def said_to_be_long(store: CapacityStore, resource: str = R) -> ResourceState:
    """A sighting of a long line, whatever stands in it."""
    now = store.read(resource).now - timedelta(milliseconds=1)
    return ResourceState(name=resource, now=now, line=1, queued=99, max_concurrency=0)


def test_refusals_that_are_known_here_only_make_a_line_long_as_well(
    make_kernel: MakeKernel, of: Definition, commands: CommandLog
) -> None:
    kernel = make_kernel(of)
    full(kernel)
    for number in range(150):
        start(kernel, of, biz_key=f"{number}")
    parts(kernel)[1].close()  # nobody tells the others of them meanwhile
    commands.clear()
    kernel.drain([QUEUE])
    looks = sum("aggregate" in command for command in commands.on("workflow_capacity"))
    assert 20 < looks < 60


def test_a_line_nothing_tells_of_is_told_of_by_the_look(kernel: Kernel, of: Definition) -> None:
    store, handing_on = full(kernel), parts(kernel)[1]
    start(kernel, of)
    kernel.drain([QUEUE])
    assert store.clear_line(R, store.read(R).line)
    handing_on.seen(said_to_be_long(store))
    handing_on.look_after_putting_off([R])
    eventually(lambda: store.read(R).line, 5, "nothing says that somebody waits")


def test_who_joined_is_looked_for_although_no_line_was_seen_since(
    kernel: Kernel, of: Definition
) -> None:
    store, handing_on = full(kernel), parts(kernel)[1]
    workflow = start(kernel, of)
    kernel.drain([QUEUE])
    handing_on.seen(said_to_be_long(store))
    handing_on.look_after_putting_off([R])
    assert store.clear_line(R, store.read(R).line)
    handing_on.seen(store.release(R, [OTHER]))
    eventually(lambda: kernel.drain([QUEUE]), 5, "the place stayed free")
    assert kernel.get(workflow).status.is_terminal


def test_one_long_line_postpones_no_other(kernel: Kernel, make_kernel: MakeKernel) -> None:
    of = definition("test.short", {"a": Step(lambda _: None, traffic_resource="short")})
    kernel.register(of)
    store, handing_on = full(kernel, "short"), parts(kernel)[1]
    start(kernel, of)
    kernel.drain([QUEUE])
    assert store.clear_line("short", store.read("short").line)
    handing_on.seen(said_to_be_long(store))
    handing_on.seen(store.read("short"))
    handing_on.close()  # only what is looked at at once is looked at
    handing_on.look_after_putting_off([R, "short"])
    assert store.read("short").line > 0


def test_after_the_look_nobody_is_said_to_wait(kernel: Kernel, of: Definition) -> None:
    """A permit given back a moment later is looked at by the same thread, and sets no line."""
    store, handing_on = full(kernel), parts(kernel)[1]
    handing_on.seen(said_to_be_long(store))
    handing_on.look_after_putting_off([R])
    eventually(lambda: store.read(R).line, 5, "it was not looked at")
    assert store.clear_line(R, store.read(R).line)
    kernel.capacity.set_limit(R, max_concurrency=9)
    handing_on.seen(store.read(R))
    handing_on.give_back(R, OTHER)
    eventually(lambda: not store.read(R).holders, 5, "the permit was not given back")
    handing_on.close()
    assert store.read(R).line == 0
    newcomer = start(kernel, of)
    kernel.drain([QUEUE])
    assert kernel.get(newcomer).status.is_terminal


@pytest.mark.parametrize("last", [1, 40_000])
def test_what_was_handed_on_is_offered_to_nobody_else(
    kernel: Kernel, of: Definition, last: int
) -> None:
    """Neither as a row nor whole, nor where a large one makes the front be read again."""
    store, handing_on = full(kernel), parts(kernel)[1]
    for number, size in enumerate((1, 1, last)):
        start(kernel, of, value="x" * size, biz_key=f"{number}")
    kernel.drain([QUEUE])
    assert handing_on.hand_on(R, store.release(R, [OTHER])) == 1
    waiters = kernel._parts.permits.waiters
    assert [len(look(R, limit=5)) for look in (waiters.first, waiters.first_whole)] == [2, 2]
