"""Whether work goes on as a whole is told from stored facts."""

import pytest

from kernel import Kernel, Progress
from kernel.keeper import ClaimSlots
from kernel.keeper.processes import Process
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Kernel:
    return make_kernel(definition("progress.quick", {"only": lambda _: None}))


def test_where_nothing_waits_nothing_stalls(kernel: Kernel) -> None:
    progress = kernel.progress()
    assert (progress.oldest_due, progress.last_claim, progress.workers) == (None, None, 0)
    assert not progress.is_stalled


def test_what_waits_while_nobody_takes_anything_is_a_stall(kernel: Kernel) -> None:
    quick = definition("progress.quick", {"only": lambda _: None})
    start(kernel, quick)
    assert not kernel.progress().is_stalled
    TimeShift(kernel).advance(seconds=61)
    assert kernel.progress().is_stalled
    kernel.drain([QUEUE])
    assert not kernel.progress().is_stalled


def test_a_type_that_is_off_stalls_nobody(kernel: Kernel, make_kernel: MakeKernel) -> None:
    quick = definition("progress.quick", {"only": lambda _: None})
    start(kernel, quick)
    other = make_kernel(quick, types_off=frozenset({"progress.quick"}))
    TimeShift(other).advance(seconds=61)
    assert not other.progress().is_stalled


def test_a_backlog_in_which_claims_are_taken_is_no_stall(kernel: Kernel) -> None:
    quick = definition("progress.quick", {"only": lambda _: None})
    slots = ClaimSlots(1)
    start(kernel, quick)
    TimeShift(kernel).advance(seconds=61)
    slots.publish(0, Process.current(), [], taken=1)
    keeper = kernel.build_keeper(slots, queues=lambda: [QUEUE])
    keeper.start()
    try:
        progress = eventually(lambda: _with_claim(kernel), 5, "no claim was reported")
        assert progress is not None
        assert progress.workers == 1
        assert not progress.is_stalled
    finally:
        keeper.stop()


def _with_claim(kernel: Kernel) -> Progress | None:
    progress = kernel.progress()
    return progress if progress.last_claim is not None else None
