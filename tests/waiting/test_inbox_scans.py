"""What the look-around costs when a great many signals wait for nobody yet."""

from typing import Any

import pytest
from pymongo import MongoClient

from kernel import ActivityContext, Kernel, WaitForSignal, workflow_id_of
from kernel.reconcile import duties
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

EARLY = 300


def wait(ctx: ActivityContext) -> Any:
    return "on" if ctx.resume else WaitForSignal("s", wait_key="k", checkpoint="x" * 50_000)


ORDER = definition("test.scan", {"a": wait})


@pytest.fixture
def inbox(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> Any:
    return mongo_client[mongo_db_name]["workflow_signals"]


def stored(n: int, *, biz_key: str, wait_key: str) -> dict[str, Any]:
    """Return a pending signal as a sender leaves it that dies before it tries to deliver."""
    return {
        "signal_id": f"{wait_key}-{n:06d}",
        "workflow_id": workflow_id_of(biz_key),
        "signal_type": "s",
        "wait_key": wait_key,
        "generation": 0,
        "status": "pending",
    }


@pytest.fixture
def waiting(make_kernel: MakeKernel, inbox: Any, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel with three instances that wait, and an inbox full of signals for later waits."""
    kernel = make_kernel(ORDER, with_redis=False)
    for n in range(3):
        start(kernel, ORDER, biz_key=f"scan:{n}")
    kernel.drain([QUEUE])
    inbox.insert_many([stored(n, biz_key=f"scan:{n % 3}", wait_key="early") for n in range(EARLY)])
    inbox.insert_many([stored(n, biz_key=f"nobody:{n}", wait_key="early-2") for n in range(EARLY)])
    monkeypatch.setattr(duties, "_BOUND", 100)
    return kernel


def test_signals_for_later_waits_cost_two_reads_a_page(
    waiting: Kernel, commands: CommandLog
) -> None:
    commands.clear()
    assert waiting.reconcile().found["pending_signals"] == 0
    # Six pages of a hundred: the page, its instances, two of a cursor and one of the lease each.
    assert len(commands.commands) <= 6 * 6 + 20


def test_a_run_is_bounded_and_the_next_one_goes_on_where_it_stopped(
    waiting: Kernel, inbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_TURNS", 2)
    inbox.insert_one(stored(0, biz_key="scan:1", wait_key="k"))
    found = [waiting.reconcile().found["pending_signals"] for _ in range(4)]
    assert sum(found) == 1, "sorted last, so met by a later run"
    assert found[0] == 0
    waiting.drain([QUEUE])
    assert waiting.find(biz_key="scan:1").output == {"a": "on"}  # type: ignore[union-attr]


def test_what_is_left_over_by_ended_workflows_is_closed_a_page_at_a_time(
    waiting: Kernel, inbox: Any, commands: CommandLog
) -> None:
    for n in range(3):
        waiting.supersede(workflow_id_of(f"scan:{n}"), reason="obsolete")
    commands.clear()
    assert waiting.reconcile().found["pending_signals"] == EARLY
    assert len(commands.commands) <= 6 * 7 + 20
    assert inbox.count_documents({"status": "pending"}) == EARLY, "those nobody registered"
