"""What a workflow costs: instance writes counted at the driver, from claim to completed."""

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import monitoring

from kernel import InstanceStatus
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

_WRITES = {"update", "findAndModify", "insert", "delete", "bulkWrite"}


class WriteCounter(monitoring.CommandListener):
    """Counts write commands on the instances of one database."""

    def __init__(self) -> None:
        self.database = ""
        self.writes: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        is_write = event.command_name in _WRITES
        collection = event.command.get(event.command_name)
        if is_write and (event.database_name, collection) == (self.database, "workflow_instances"):
            self.writes.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Count attempts, not answers."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Count attempts, not answers."""


#: Listens to every client made after this line; the driver takes no listener back.
_COUNTER = WriteCounter()
monitoring.register(_COUNTER)


@pytest.fixture
def counter(mongo_db_name: str) -> Iterator[WriteCounter]:
    """Count the writes of this test's database."""
    _COUNTER.database = mongo_db_name
    yield _COUNTER
    _COUNTER.database = ""
    _COUNTER.writes.clear()


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("finalized", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_a_line_of_n_steps_costs_n_and_one_writes_and_its_finalizer_one(
    make_kernel: MakeKernel,
    counter: WriteCounter,
    steps: int,
    finalized: bool,
    with_redis: bool,
) -> None:
    options: dict[str, Any] = {"success_finalizer": lambda _: None} if finalized else {}
    order = definition(
        "test.line", {f"s{i}": lambda ctx: ctx.step for i in range(steps)}, **options
    )
    kernel = make_kernel(order, with_redis=with_redis)
    workflow_id = start(kernel, order)
    counter.writes.clear()
    kernel.drain([QUEUE], max_claims=1)
    spent = len(counter.writes)
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert spent <= steps + 1 + finalized


def test_registering_costs_one_write_and_again_changes_nothing(
    make_kernel: MakeKernel, counter: WriteCounter
) -> None:
    order = definition("test.line", {"a": lambda _: None})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    assert len(counter.writes) == 1
    before = kernel.get(workflow_id)
    start(kernel, order, "another input")
    assert kernel.get(workflow_id) == before
