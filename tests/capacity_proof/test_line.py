"""The line of a resource, and an operator who changes limits while work goes on."""

import uuid

import pytest

from kernel import InstanceStatus, Priority
from tests.capacity_proof.business import plans
from tests.capacity_proof.calls import most_in_flight
from tests.capacity_proof.deployment import Deployment
from tests.kit.waiting import eventually, never

pytestmark = pytest.mark.timeout(300)

#: Seconds in which somebody would have started, if anybody could.
LONG_ENOUGH = 1.5


def gate() -> str:
    """Name a gate of one call's own."""
    return uuid.uuid4().hex


def lined_up(
    deployment: Deployment, resource: str, gates: list[str], *, before: int = 0
) -> list[str]:
    """Register workflows one after another, each when the one before stands in the line."""
    names = []
    for place, name in enumerate(gates, start=before + 1):
        names.append(deployment.start(resource, gate=name))
        deployment.waiting(resource, place)
    return names


def test_the_line_is_kept_within_a_lane_and_a_better_lane_goes_first(shared: Deployment) -> None:
    resource = shared.limited("line", max_concurrency=1)
    first, urgent = gate(), gate()
    gates = [gate() for _ in range(4)]
    names = [shared.start(resource, gate=first)]
    shared.began(resource, 1)
    names += lined_up(shared, resource, gates)
    names.append(shared.start(resource, gate=urgent, priority=Priority.REALTIME))
    shared.waiting(resource, 5)
    positions = {each.workflow_id: each.position for each in shared.status(resource).waiters}
    expected = [names[0], names[-1], *names[1:-1]]
    assert [positions[name] for name in expected[1:]] == [1, 2, 3, 4, 5]
    for turn, opened in enumerate([first, urgent, *gates], start=1):
        calls = shared.began(resource, turn)
        assert [call.workflow for call in calls] == expected[:turn]
        shared.provider.open(opened)
    shared.all_ended(names)
    calls = shared.provider.calls(resource)
    assert most_in_flight(calls) == 1
    assert len({call.owner for call in calls}) == len(calls) == 6
    status = shared.status(resource)
    assert (status.used, status.reserved, status.waiting) == (0, 0, 0)


def test_raising_and_lowering_take_effect_at_once_and_interrupt_nobody(shared: Deployment) -> None:
    resource, capacity = shared.limited("live", max_concurrency=1), shared.stage.kernel.capacity
    gates = [gate() for _ in range(6)]
    names = [shared.start(resource, gate=gates[0])]
    shared.began(resource, 1)
    names += lined_up(shared, resource, gates[1:])
    capacity.set_limit(resource, max_concurrency=3, reason="more", by="test")
    assert len(shared.began(resource, 3)) == 3
    capacity.set_limit(resource, max_concurrency=1, reason="less", by="test")
    assert shared.status(resource).used == 3
    by_name = dict(zip(names, gates, strict=True))
    holding = [call.workflow for call in shared.provider.calls(resource)]
    for name in holding[:2]:
        shared.provider.open(by_name[name])
    shared.all_ended(holding[:2])
    never(lambda: len(shared.provider.calls(resource)) > 3, LONG_ENOUGH, "started over the limit")
    for name in gates:
        shared.provider.open(name)
    shared.all_ended(names)
    calls = shared.provider.calls(resource)
    assert most_in_flight(calls[3:]) == 1, "the lowered limit held for all that came later"


def test_nothing_starts_while_paused_and_other_work_is_not_delayed(shared: Deployment) -> None:
    resource, capacity = shared.limited("paused", max_concurrency=2), shared.stage.kernel.capacity
    capacity.pause(resource, reason="the provider asked", by="test")
    blocked = shared.crowd(resource, 30, ms=1)
    free = shared.crowd(f"{resource}:free", 5, plan=plans.FREE)
    other = shared.limited("other", max_concurrency=2)
    beside = shared.crowd(other, 5, ms=1)
    shared.all_ended([*free, *beside], within=30)
    shared.waiting(resource, 30)
    never(lambda: shared.provider.calls(resource), LONG_ENOUGH, "started while paused")
    assert all(shared.stage.kernel.get(name).claim_token is None for name in blocked[:5])
    capacity.resume(resource, reason="they are back", by="test")
    shared.all_ended(blocked)
    assert most_in_flight(shared.provider.calls(resource)) <= 2
    history = [(entry.by, entry.reason) for entry in shared.status(resource).history]
    assert history[-2:] == [("test", "the provider asked"), ("test", "they are back")]


def test_a_cooldown_ends_by_itself(shared: Deployment) -> None:
    resource, capacity = shared.limited("cool", max_concurrency=2), shared.stage.kernel.capacity
    closed = capacity.cooldown(resource, seconds=2.5, reason="429", by="test")
    assert closed.cooldown_until is not None
    names = shared.crowd(resource, 4, ms=1, ask=True)
    shared.all_ended(names)
    granted = [call.granted for call in shared.provider.calls(resource) if call.granted is not None]
    assert len(granted) == 4
    assert min(granted) >= closed.cooldown_until.timestamp() - 0.001


def test_a_permit_of_the_workflow_is_held_over_its_steps(shared: Deployment) -> None:
    resource = shared.limited("tenant", max_concurrency=1)
    names = shared.crowd(resource, 4, plan=plans.HELD, ms=30)
    shared.all_ended(names)
    calls = shared.provider.calls(resource)
    assert most_in_flight(calls) == 1
    assert [call.step for call in calls] == ["first", "second"] * 4
    pairs = [(calls[at].workflow, calls[at + 1].workflow) for at in range(0, 8, 2)]
    assert all(first == second for first, second in pairs), "nobody came in between"


def test_an_override_falls_back_by_itself(shared: Deployment) -> None:
    resource, capacity = shared.limited("over", max_concurrency=1), shared.stage.kernel.capacity
    capacity.set_limit(resource, max_concurrency=2, expires_in=2.0, reason="for now", by="test")
    opened = [gate() for _ in range(3)]
    names = [shared.start(resource, gate=name) for name in opened]
    shared.began(resource, 2)
    eventually(lambda: shared.status(resource).max_concurrency == 1, 15, "never fell back")
    calls = shared.began(resource, 2)
    by_name = dict(zip(names, opened, strict=True))
    shared.provider.open(by_name[calls[0].workflow])
    shared.all_ended([calls[0].workflow])
    never(lambda: len(shared.provider.calls(resource)) > 2, LONG_ENOUGH, "started over the limit")
    for name in opened:
        shared.provider.open(name)
    shared.all_ended(names)
    assert all(shared.stage.kernel.get(name).status is InstanceStatus.COMPLETED for name in names)
