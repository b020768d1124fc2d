"""Where there is plenty of room, a permit is given back a moment later, together with others."""

import pytest

from kernel import ActivityContext, Step
from kernel.errors import StoreUnavailable
from kernel.store import CapacityStore
from kernel.testing import run_until_idle
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually

R = "psp"


def test_many_that_never_fill_it_cost_about_one_update_each_and_nothing_is_left(
    make_kernel: MakeKernel, commands: CommandLog
) -> None:
    order = definition("test.roomy", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_concurrency=100)
    for n in range(20):
        start(kernel, order, biz_key=f"t:{n}")
    commands.clear()
    assert kernel.drain([QUEUE]) == 20
    updates = [c for c in commands.on("workflow_capacity") if "findAndModify" in c]
    assert len(updates) <= 30
    status = kernel.capacity.status(R)
    assert (status.used, status.granted) == (0, 20)


def test_one_that_comes_meanwhile_and_finds_it_full_does_not_wait_for_long(
    make_kernel: MakeKernel,
) -> None:
    order = definition("test.roomy", {"a": Step(lambda _: None, traffic_resource=R), "b": _lowers})
    kernel = make_kernel(order)
    kernel.capacity.set_limit(R, max_concurrency=4)
    _lowers.kernel = kernel  # type: ignore[attr-defined]
    names = [start(kernel, order, biz_key="lowers"), start(kernel, order, biz_key="comes")]
    run_until_idle(kernel, [QUEUE])
    eventually(lambda: all(kernel.get(each).status.is_terminal for each in names), 20)
    assert kernel.capacity.status(R).used == 0


def _lowers(ctx: ActivityContext) -> None:
    """Close all but the place that is still to be given back, and let another one ask."""
    if ctx.biz_key == "lowers":
        _lowers.kernel.capacity.set_limit(R, max_concurrency=1)  # type: ignore[attr-defined]
        _lowers.kernel.run_once([QUEUE])  # type: ignore[attr-defined]


def test_what_could_not_be_given_back_is_tried_again(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = definition("test.roomy", {"a": Step(lambda _: None, traffic_resource=R)})
    kernel = make_kernel(order)
    exchange = CapacityStore.exchange
    failed: list[str] = []

    def fails_once(self: CapacityStore, resource: str, **values: object) -> object:
        if values.get("leaving") and not failed:
            failed.append(resource)
            raise StoreUnavailable("no answer")
        return exchange(self, resource, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(CapacityStore, "exchange", fails_once)
    start(kernel, order)
    kernel.drain([QUEUE])
    kernel.drain([QUEUE])
    assert failed == [R]
    assert kernel.capacity.status(R).used == 0
