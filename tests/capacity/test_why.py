"""Why a workflow waits for a permit: its place in line, what is in use, how long it may take."""

from kernel import Kernel, Priority, Reason, Step
from kernel.protocol.resources import PermitOwner
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition

R = "psp"
ORDER = definition("test.why", {"a": Step(lambda _: None, traffic_resource=R)})


def crowd(kernel: Kernel, count: int) -> list[str]:
    """Fill the resource elsewhere, put instances into its line, and return them in order."""
    owner = PermitOwner("elsewhere", "s", "elsewhere")
    kernel._parts.permits.store.acquire(R, [owner], lease_ms=3_600_000)
    ids = []
    for n in range(count):
        start = kernel.start_or_resume(ORDER.plan, biz_key=f"t:{n}", priority=Priority.ASYNC)
        ids.append(start.workflow_id)
        kernel.drain([QUEUE])
    return ids


def test_it_names_the_place_and_what_is_in_use(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.set_limit(R, max_concurrency=1)
    ids = crowd(kernel, 3)
    TimeShift(kernel).advance(seconds=7)
    told = [kernel.why(each) for each in ids]
    assert [each.position for each in told] == [1, 2, 3]
    assert all(each.reason is Reason.PERMIT for each in told)
    assert "at step a · permit psp · number 3 in line, 1 of 1 in use" in told[2].sentence
    assert told[2].sentence.startswith("waiting for 7.")


def test_a_rate_tells_about_when(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.set_limit(R, max_starts_per_second=0.5)
    ids = crowd(kernel, 3)
    told = kernel.why(ids[2])
    assert told.position == 3
    assert told.estimate is not None
    assert 4 <= told.estimate <= 6.1
    assert "0.5 starts a second" in told.sentence


def test_a_cooldown_tells_when_it_ends(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.cooldown(R, seconds=60)
    [waiting] = crowd_of_one(kernel)
    assert "cooling down for" in kernel.why(waiting).sentence


def test_a_pause_tells_that_somebody_has_to_end_it(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.pause(R)
    [waiting] = crowd_of_one(kernel)
    told = kernel.why(waiting)
    assert (told.reason, told.estimate) == (Reason.PAUSED, None)
    assert "paused until somebody resumes it" in told.sentence


def test_a_pause_and_its_end_are_told_to_those_who_stood_there_before(
    make_kernel: MakeKernel,
) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.set_limit(R, max_concurrency=1)
    [waiting] = crowd(kernel, 1)
    kernel.capacity.pause(R)
    told = kernel.why(waiting)
    assert (told.reason, told.estimate) == (Reason.PAUSED, None)
    assert "at step a · paused psp · number 1 in line" in told.sentence
    kernel.capacity.resume(R)
    told = kernel.why(waiting)
    assert told.reason is Reason.PERMIT
    assert told.sentence.endswith("at step a · permit psp · number 1 in line, 1 of 1 in use")


def test_nobody_guesses_when_a_permit_comes_back_that_never_has(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(ORDER)
    kernel.capacity.set_limit(R, max_concurrency=1, max_starts_per_second=100)
    ids = crowd(kernel, 2)
    assert [kernel.why(each).estimate for each in ids] == [None, None]


def crowd_of_one(kernel: Kernel) -> list[str]:
    started = kernel.start_or_resume(ORDER.plan, biz_key="t:1")
    kernel.drain([QUEUE])
    return [started.workflow_id]
