"""What a workflow costs: instance writes counted at the driver, from claim to completed."""

from typing import Any

import pytest

from kernel import InstanceStatus
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, MakeKernel, definition, start

_WRITES = {"update", "findAndModify", "insert", "delete", "bulkWrite"}


def writes(commands: CommandLog) -> list[str]:
    """Return the commands that wrote instances."""
    names = (next(iter(command)) for command in commands.on("workflow_instances"))
    return [name for name in names if name in _WRITES]


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("finalized", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_a_line_of_n_steps_costs_n_and_one_writes_and_its_finalizer_one(
    make_kernel: MakeKernel,
    commands: CommandLog,
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
    commands.clear()
    kernel.drain([QUEUE], max_claims=1)
    spent = len(writes(commands))
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert spent <= steps + 1 + finalized


def test_registering_costs_one_write_and_again_changes_nothing(
    make_kernel: MakeKernel, commands: CommandLog
) -> None:
    order = definition("test.line", {"a": lambda _: None})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    assert len(writes(commands)) == 1
    before = kernel.get(workflow_id)
    start(kernel, order, "another input")
    assert kernel.get(workflow_id) == before
