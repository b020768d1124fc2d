"""Duties one process at a time does: only their holder moves them, and no part ends the others."""

from typing import Any

import pytest

from kernel import Kernel, Priority
from kernel.reconcile import duties
from tests.kit.kernels import QUEUE, MakeKernel, definition

ORDER = definition("duty.order", {"a": lambda _: "a"})


def test_only_its_holder_gives_a_duty_back_or_keeps_its_cursor(kernel: Kernel) -> None:
    leases = kernel._parts.leases
    assert leases.acquire("sweep", "here", lease_ms=60_000)
    leases.keep_cursor("sweep", "here", "part", "m")
    leases.release("sweep", "elsewhere")
    leases.keep_cursor("sweep", "elsewhere", "part", "a")
    assert not leases.acquire("sweep", "elsewhere", lease_ms=60_000)
    assert leases.cursor("sweep", "part") == "m"
    leases.release("sweep", "here")
    assert leases.acquire("sweep", "elsewhere", lease_ms=60_000)


def test_a_turn_begins_once_in_its_interval_whoever_asks(kernel: Kernel) -> None:
    leases = kernel._parts.leases
    assert leases.begin("turn", interval_ms=600_000)
    assert not leases.begin("turn", interval_ms=600_000)
    assert leases.begin("turn", interval_ms=0)


def test_a_part_that_raises_is_told_and_the_others_run(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object, **__: object) -> Any:
        raise ValueError("what stands there")

    monkeypatch.setattr(duties, "activate_due_waits", raises)
    done = kernel.reconcile()
    assert done.failed == {"due_waits": "ValueError: what stands there"}
    assert {"lost_candidates", "pending_signals", "ended_permits"} <= done.found.keys()


def test_whoever_is_raised_while_it_waits_stands_in_the_better_lane(
    make_kernel: MakeKernel,
) -> None:
    kernel = make_kernel(ORDER)
    for priority in (Priority.RECOVERY, Priority.REALTIME):
        kernel.start_or_resume(ORDER.plan, biz_key="one", priority=priority)
    depth = kernel.hints.hints.depth(QUEUE)
    assert [depth[lane].total for lane in Priority] == [1, 0, 0, 0]
