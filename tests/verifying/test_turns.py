"""Work that nobody would take up in this lifetime is found; the longest legal delays are not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo.collection import Collection

from kernel import ActivityContext, Kernel, RetryPolicy, Sleep, Step, WaitForSignal, limits
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start

NOW = datetime.now(UTC).replace(microsecond=0)
IN_YEARS = NOW + timedelta(days=3 * 366)
TOMORROW = NOW + timedelta(days=1)
LONGEST = limits.DELAY_SECONDS_MAX


def refused(ctx: ActivityContext) -> None:
    raise OSError("not now")


def unfinished(ctx: ActivityContext) -> None:
    raise OSError("the end fails")


A_YEAR = RetryPolicy(max_retry=9, backoff="fixed", initial=LONGEST)
FRESH = definition("turns.fresh", {"a": lambda _: 1})
RETRIED = definition("turns.retried", {"a": Step(refused, retry=A_YEAR)})
SLEEPING = definition("turns.sleeping", {"a": lambda _: Sleep(LONGEST)})
LISTENING = definition("turns.listening", {"a": lambda _: WaitForSignal("s", wait_key="k")})
FAILING = definition("turns.failing", {"a": refused}, failure_finalizer=unfinished)
IN_LINE = definition("turns.in_line", {"a": Step(lambda _: 1, traffic_resource="closed")})
LEGAL = (RETRIED, SLEEPING, LISTENING, FAILING, IN_LINE)


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Kernel:
    """A kernel with one instance of each kind that is put off, and one nobody has claimed."""
    kernel = make_kernel(*LEGAL, FRESH, with_redis=False)
    kernel.capacity.pause("closed")
    for one in LEGAL:
        start(kernel, one, biz_key=one.plan.type)
    kernel.drain([QUEUE])
    start(kernel, FRESH, biz_key="turns.fresh")
    return kernel


def facts(kernel: Kernel) -> list[str]:
    """Return what is found, all of it of the invariant of waits."""
    found = list(kernel.verify())
    assert {one.invariant for one in found} <= {10}
    return [f"{one.biz_key}: {one.fact}" for one in found]


def test_the_longest_legal_delays_are_no_finding(kernel: Kernel) -> None:
    assert facts(kernel) == []


@pytest.mark.parametrize("of", [RETRIED, FAILING, IN_LINE, FRESH])
@pytest.mark.parametrize("at", [IN_YEARS, limits.FAR_FUTURE])
def test_what_is_put_off_without_a_reason_is_found(
    kernel: Kernel, instances: Collection[dict[str, Any]], of: Any, at: datetime
) -> None:
    name = of.plan.type
    instances.update_one({"biz_key": name}, {"$set": {"claimable_time": at}})
    [told] = facts(kernel)
    assert told.startswith(f"{name}: nobody looks before {at}, and nothing")


def test_one_in_line_that_was_handed_on_late_is_no_finding(
    kernel: Kernel, instances: Collection[dict[str, Any]]
) -> None:
    in_line = {"biz_key": "turns.in_line"}
    row = instances.find_one(in_line)
    assert row is not None
    late = row["blocked_on"]["until"] + timedelta(minutes=5)
    instances.update_one(in_line, {"$set": {"claimable_time": late}})
    assert facts(kernel) == []


def test_a_day_without_a_reason_is_one_too_many(
    kernel: Kernel, instances: Collection[dict[str, Any]]
) -> None:
    instances.update_one({"biz_key": "turns.fresh"}, {"$set": {"claimable_time": TOMORROW}})
    assert len(facts(kernel)) == 1


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (RETRIED, "steps.a.not_before"),
        (FAILING, "blocked_on.until"),
        (SLEEPING, "waits.0.poll_time"),
    ],
)
def test_a_reason_that_is_itself_beyond_every_delay_is_found(
    kernel: Kernel, instances: Collection[dict[str, Any]], of: Any, reason: str
) -> None:
    change = {"claimable_time": IN_YEARS, reason: IN_YEARS}
    instances.update_one({"biz_key": of.plan.type}, {"$set": change})
    [told] = facts(kernel)
    assert "longer than any" in told


def test_a_lease_of_years_is_found(
    make_kernel: MakeKernel, dead_worker: DeadWorker, instances: Collection[dict[str, Any]]
) -> None:
    kernel = make_kernel(FRESH, with_redis=False)
    workflow_id = start(kernel, FRESH)
    dead_worker.begins(kernel, workflow_id, lease_over=False)
    assert facts(kernel) == []
    instances.update_one({"workflow_id": workflow_id}, {"$set": {"claimable_time": IN_YEARS}})
    [told] = facts(kernel)
    assert "longer than anything is put off" in told
