"""What the look-around costs when a great many signals wait for nobody yet."""

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient, monitoring

from kernel import ActivityContext, Kernel, WaitForSignal, workflow_id_of
from kernel.reconcile import duties
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

EARLY = 300


class Counter(monitoring.CommandListener):
    """Counts the commands of one database."""

    def __init__(self) -> None:
        self.database = ""
        self.count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count += event.database_name == self.database

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Only what was asked counts."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Only what was asked counts."""


_COUNTER = Counter()
monitoring.register(_COUNTER)


@pytest.fixture
def counter(mongo_db_name: str) -> Iterator[Counter]:
    _COUNTER.database = mongo_db_name
    yield _COUNTER
    _COUNTER.database = ""


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


def test_signals_for_later_waits_cost_two_reads_a_page(waiting: Kernel, counter: Counter) -> None:
    counter.count = 0
    assert waiting.reconcile().found["pending_signals"] == 0
    # Six pages of a hundred: the page, its instances, two of a cursor and one of the lease each.
    assert counter.count <= 6 * 6 + 20


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
    waiting: Kernel, inbox: Any, counter: Counter
) -> None:
    for n in range(3):
        waiting.supersede(workflow_id_of(f"scan:{n}"), reason="obsolete")
    counter.count = 0
    assert waiting.reconcile().found["pending_signals"] == EARLY
    assert counter.count <= 6 * 7 + 20
    assert inbox.count_documents({"status": "pending"}) == EARLY, "those nobody registered"
