"""A workflow under a claim is woken by its own signals only, and by each of them once."""

from typing import Any

from kernel import ActivityContext, InstanceStatus, StepStatus, Yield, workflow_id_of
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.waiting.test_signals import WORKFLOW_ID, ring, wait


def comes_again(ctx: ActivityContext) -> Any:
    """Be claimed anew a few times, while another step waits."""
    turn = ctx.checkpoint or 0
    return Yield(turn + 1) if turn < 4 else "done"


BESIDE = definition(
    "test.beside",
    {"a": wait, "b": comes_again, "c": wait},
    depends_on={"a": [], "b": [], "c": ["a"]},
)


def test_a_pending_signal_of_another_workflow_wakes_nobody_else(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(BESIDE)
    assert ring(kernel, "theirs", workflow_id=workflow_id_of("test:2")) is True
    start(kernel, BESIDE)
    kernel.drain([QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert (instance.status, instance.output) == (InstanceStatus.WAITING, {"b": "done"})


def test_a_signal_that_woke_a_step_does_not_wake_the_next_that_waits_alike(
    make_kernel: MakeKernel,
) -> None:
    kernel = make_kernel(BESIDE)
    assert ring(kernel) is True
    start(kernel, BESIDE)
    kernel.drain([QUEUE])
    instance = kernel.get(WORKFLOW_ID)
    assert instance.steps["c"].status is StepStatus.WAITING
    assert instance.output == {"a": "one", "b": "done"}
    assert ring(kernel, "two") is True
    kernel.drain([QUEUE])
    assert kernel.get(WORKFLOW_ID).output["c"] == "two"
