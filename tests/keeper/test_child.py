"""The child's side: it publishes, heeds, renews itself if it must, and cleans up before it."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kernel import ActivityContext, Definition, InstanceStatus, Kernel, StepStatus
from kernel.keeper import ClaimSlots
from tests.keeper.children import child, claim, identity
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, ended, start
from tests.kit.waiting import eventually, never

LEASE_SECONDS = 1.5


class Gate:
    """An activity's meeting point with its test."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.cancelled_at: float | None = None

    def __call__(self, ctx: ActivityContext) -> str:
        self.entered.set()
        while not self.open.wait(0.01):
            if ctx.cancelled.is_set() and self.cancelled_at is None:
                self.cancelled_at = time.monotonic()
        return "home"


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def slots() -> ClaimSlots:
    return ClaimSlots(2)


@pytest.fixture
def gated(gate: Gate) -> Definition:
    return definition("child.gated", {"gate": gate, "after": lambda _: "done"})


@pytest.fixture
def in_child(
    make_kernel: MakeKernel, slots: ClaimSlots, gated: Definition
) -> Iterator[Callable[[], Kernel]]:
    """Build the kernel of a pool child whose place in the slots is the first."""
    observer = make_kernel(gated, lease=LEASE_SECONDS)
    built: list[Kernel] = []

    def build() -> Kernel:
        kernel = Kernel.connect(observer.config, child=(slots, 0))
        kernel.register(gated)
        built.append(kernel)
        return kernel

    yield build
    for kernel in built:
        kernel.close()


@pytest.fixture
def draining(gate: Gate) -> Iterator[Callable[[Kernel], threading.Thread]]:
    """Drain in a thread, as a child's task does; its gate is opened at the end."""
    threads: list[threading.Thread] = []

    def begin(kernel: Kernel) -> threading.Thread:
        thread = threading.Thread(target=kernel.drain, args=([QUEUE],))
        threads.append(thread)
        thread.start()
        assert gate.entered.wait(10)
        return thread

    yield begin
    gate.open.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


InChild = Callable[[], Kernel]
Draining = Callable[[Kernel], threading.Thread]


def test_a_claim_is_published_with_its_step_and_deadline_and_withdrawn(
    in_child: InChild, slots: ClaimSlots, gated: Definition, draining: Draining, gate: Gate
) -> None:
    slots.write_beat(time.monotonic() + 60)
    kernel = in_child()
    workflow_id = start(kernel, gated)
    thread = draining(kernel)
    published = slots.read(0)
    assert published is not None
    (held,) = published.claims
    assert (held.workflow_id, held.step) == (workflow_id, "gate")
    assert held.token == kernel.get(workflow_id).claim_token
    assert held.deadline > time.monotonic() + 30
    gate.open.set()
    thread.join(10)
    after = slots.read(0)
    assert after is not None
    assert after.claims == ()


def test_a_lost_flag_reaches_the_activity_within_a_fifth_of_a_second(
    in_child: InChild, slots: ClaimSlots, gated: Definition, draining: Draining, gate: Gate
) -> None:
    slots.write_beat(time.monotonic() + 60)
    kernel = in_child()
    workflow_id = start(kernel, gated)
    draining(kernel)
    token = kernel.get(workflow_id).claim_token
    assert token
    flagged_at = time.monotonic()
    slots.flag_lost(0, [token])
    reached_at = eventually(lambda: gate.cancelled_at, 5, "the activity was never told")
    assert reached_at is not None
    # Twice the promise, because the machine that runs the tests is a busy one.
    assert reached_at - flagged_at < 0.4


def test_without_its_keeper_a_child_renews_itself_and_takes_nothing_new(
    in_child: InChild, slots: ClaimSlots, gated: Definition, draining: Draining, gate: Gate
) -> None:
    slots.write_beat(time.monotonic())
    kernel = in_child()
    first = start(kernel, gated, biz_key="orphan:1")
    thread = draining(kernel)
    second = start(kernel, gated, biz_key="orphan:2")
    never(
        lambda: kernel.get(first).claimable_time.timestamp() < time.time(),
        2 * LEASE_SECONDS,
        "the lease ran out",
    )
    gate.open.set()
    thread.join(10)
    handed_back = kernel.get(first)
    assert handed_back.claim_token is None
    assert handed_back.steps["gate"].status is StepStatus.COMPLETED
    assert handed_back.steps["after"].status is StepStatus.PENDING
    assert kernel.get(second).steps["gate"].attempt == 0
    assert kernel.drain([QUEUE]) == 0
    slots.write_beat(time.monotonic() + 60)
    assert kernel.drain([QUEUE]) == 2
    assert ended(kernel, first).steps["after"].recoveries == 0


def test_a_stop_request_lets_the_step_come_home_and_hands_back(
    in_child: InChild, slots: ClaimSlots, gated: Definition, draining: Draining, gate: Gate
) -> None:
    slots.write_beat(time.monotonic() + 60)
    kernel = in_child()
    workflow_id = start(kernel, gated)
    thread = draining(kernel)
    slots.request_stop()
    gate.open.set()
    thread.join(10)
    instance = kernel.get(workflow_id)
    assert instance.claim_token is None
    assert instance.steps["gate"].status is StepStatus.COMPLETED
    assert (instance.steps["after"].status, instance.steps["after"].attempt) == ("pending", 0)
    assert kernel.hints.hints.has_due(QUEUE), "nobody was told that it can go on"
    assert kernel.drain([QUEUE]) == 0


def test_a_successor_frees_what_its_predecessor_died_with(
    in_child: InChild, slots: ClaimSlots, gated: Definition, gate: Gate, dead_worker: DeadWorker
) -> None:
    gate.open.set()
    slots.write_beat(time.monotonic() + 60)
    with child() as process:
        predecessor = identity(process)
        starter = in_child()
        workflow_id = start(starter, gated)
        instance = dead_worker.begins(starter, workflow_id, lease_over=False)
        assert instance.claim_token
        slots.publish(0, predecessor, [claim(workflow_id, instance.claim_token)])
    successor = in_child()
    assert successor.free_left_behind() == 1
    assert successor.free_left_behind() == 0
    assert successor.get(workflow_id).claim_token is None
    done = ended(successor, workflow_id)
    assert done.status is InstanceStatus.COMPLETED
    assert done.steps["gate"].attempt == 2


def test_a_successor_leaves_a_living_childs_claims_alone(
    in_child: InChild, slots: ClaimSlots
) -> None:
    slots.write_beat(time.monotonic() + 60)
    with child() as process:
        slots.publish(0, identity(process), [claim("wf_living", "t")])
        assert in_child().free_left_behind() == 0
