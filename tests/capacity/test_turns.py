"""Whose turn it is: a place is since when one could have gone on, not when it was refused."""

from collections.abc import Callable
from typing import Any

import pytest

from kernel import ActivityContext, Definition, Kernel, RetryPolicy, Sleep, Step
from kernel.engine.passing import Passing
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, pass_time_until_due, start

R = "psp"


class Crowd:
    """Workflows behind one permit that somebody else holds until `open`.

    `meanwhile[name]` is called once, when the resources of that workflow are asked for.
    """

    def __init__(self, activity: Callable[[ActivityContext], object] | None = None) -> None:
        self.ran: list[str] = []
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.step = Step(
            activity or (lambda ctx: self.ran.append(ctx.biz_key)),
            traffic_resource=self.names,
            retry=RetryPolicy(max_retry=1, backoff="fixed", initial=30),
        )

    def names(self, value: Any) -> list[str]:
        """Name the resource, as a step or as a workflow."""
        if (happens := self.meanwhile.pop(value["name"], None)) is not None:
            happens()
        return [R]

    def meets(self, kernel: Kernel, of: Definition) -> None:
        """Begin with these."""
        self.kernel, self.order = kernel, of
        kernel.capacity.set_limit(R, max_concurrency=1)
        self._store = kernel._parts.permits.store
        self.close()

    def close(self) -> None:
        """Let somebody else take the permit."""
        self._other = PermitOwner("other", "s", "other")
        assert self._store.acquire(R, [self._other], lease_ms=3_600_000).holds(self._other)

    def release(self) -> None:
        """Let the first in line through, when somebody claims it."""
        state = self._store.release(R, [self._other])
        self.kernel._parts.permits.handing_on.hand_on(R, state)

    def open(self) -> None:
        """Let everybody through, one after another."""
        self.release()
        self.kernel.drain([QUEUE])

    def come(self, name: str) -> str:
        """Register one and let it ask; it is refused."""
        workflow_id = start(self.kernel, self.order, {"name": name}, biz_key=name)
        assert self.kernel.run_once([QUEUE])
        return workflow_id


def ready_since(kernel: Kernel, workflow_id: str) -> Any:
    """Return the place of one that stands in the line."""
    blocked = kernel.get(workflow_id).blocked_on
    assert blocked is not None
    assert blocked.reason.is_traffic
    return blocked.since


@pytest.mark.parametrize("whose", ["step", "workflow"])
def test_one_refused_slowly_stands_where_it_came_and_not_behind_those_refused_meanwhile(
    make_kernel: MakeKernel, whose: str
) -> None:
    crowd = Crowd()
    if whose == "step":
        order = definition("test.turns", {"call": crowd.step})
    else:
        call = {"call": lambda ctx: crowd.ran.append(ctx.biz_key)}
        order = definition("test.turns", call, workflow_resources=crowd.names)
    crowd.meets(make_kernel(order), order)
    crowd.meanwhile["older"] = lambda: [crowd.come(name) for name in ("younger", "youngest")]
    older = crowd.come("older")
    waiting = crowd.kernel.capacity.status(R).waiters
    assert [waiter.position for waiter in waiting] == [1, 2, 3]
    assert waiting[0].workflow_id == older
    assert ready_since(crowd.kernel, older) == crowd.kernel.get(older).round_started_at
    crowd.open()
    assert crowd.ran == ["older", "younger", "youngest"]


def test_a_later_step_stands_where_it_came_in_and_not_where_its_workflow_began(
    make_kernel: MakeKernel,
) -> None:
    crowd = Crowd()
    order = definition("test.later", {"before": lambda _: None, "call": crowd.step})
    crowd.meets(make_kernel(order), order)
    late = start(crowd.kernel, order, {"name": "late"}, biz_key="late")
    TimeShift(crowd.kernel).advance(seconds=60)
    crowd.kernel.drain([QUEUE])
    instance = crowd.kernel.get(late)
    assert ready_since(crowd.kernel, late) == instance.steps["before"].finished_at
    assert (ready_since(crowd.kernel, late) - instance.round_started_at).total_seconds() >= 60


def test_a_retry_stands_where_its_delay_was_over(make_kernel: MakeKernel) -> None:
    def fails_once(ctx: ActivityContext) -> None:
        if ctx.attempt == 1:
            raise RuntimeError("not now")

    crowd = Crowd(fails_once)
    order = definition("test.retry", {"call": crowd.step})
    crowd.meets(make_kernel(order), order)
    workflow_id = crowd.come("again")
    crowd.open()
    crowd.close()
    due = crowd.kernel.get(workflow_id).steps["call"].not_before
    pass_time_until_due(crowd.kernel, workflow_id)
    TimeShift(crowd.kernel).advance(seconds=5)
    crowd.kernel.drain([QUEUE])
    assert ready_since(crowd.kernel, workflow_id) == due


def test_a_deploy_between_permit_and_entry_costs_nobody_its_place(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd()
    order = definition("test.deploy", {"call": crowd.step})
    crowd.meets(make_kernel(order), order)
    ids = [crowd.come(name) for name in ("first", "second", "third")]
    place, others = ready_since(crowd.kernel, ids[0]), crowd.kernel
    leaving = make_kernel(order)
    to_next, passed = Passing.to_next, list[Any]()

    def told_to_stop(self: Passing, *what: Any) -> Any:
        passed.append(to_next(self, *what))
        if len(passed) == 2:
            leaving.request_stop()
        return passed[-1]

    monkeypatch.setattr(Passing, "to_next", told_to_stop)
    crowd.release()
    leaving.drain([QUEUE])
    assert passed[-1].instance.workflow_id == ids[2], "claimed and begun, and not entered"
    TimeShift(others).advance(seconds=3)
    others.capacity.pause(R)
    others.drain([QUEUE])
    assert ready_since(others, ids[2]) == others.get(ids[2]).round_started_at > place
    others.capacity.resume(R)
    others.drain([QUEUE])
    assert crowd.ran == ["first", "second", "third"]
    assert others.get(ids[2]).steps["call"].place is None


def test_a_workflow_stands_where_the_step_came_that_could_run_and_not_one_that_waits_elsewhere(
    make_kernel: MakeKernel,
) -> None:
    ran: list[str] = []

    def wakes(ctx: ActivityContext) -> object:
        if ctx.biz_key == "stuck" and ctx.resume is None:
            return Sleep(60)
        ran.append(ctx.biz_key)
        return None

    elsewhere = Step(lambda _: None, traffic_resource="other")
    steps: dict[str, Any] = {"elsewhere": elsewhere, "call": wakes}
    order = definition("test.stuck", steps, workflow_resources=lambda _: R,
                       depends_on={"elsewhere": [], "call": []})  # fmt: skip
    kernel = make_kernel(order)
    kernel.tick()  # builds the hints, so that it frees no permits of ours later
    kernel.capacity.pause("other")
    kernel.capacity.set_limit(R, max_concurrency=1)
    stuck = start(kernel, order, biz_key="stuck")
    kernel.drain([QUEUE])
    holder = PermitOwner("other", None, "other")
    assert kernel._parts.permits.store.acquire(R, [holder], lease_ms=3_600_000).holds(holder)
    TimeShift(kernel).advance(seconds=5)
    second = start(kernel, order, biz_key="second")
    kernel.drain([QUEUE])
    TimeShift(kernel).advance(seconds=56)
    kernel.tick()
    kernel.drain([QUEUE])
    assert [w.workflow_id for w in kernel.capacity.status(R).waiters] == [second, stuck]
