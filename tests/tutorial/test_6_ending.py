"""Chapter 6, ending early: the work is not wanted any more."""

from kernel import (
    ActivityContext,
    Definition,
    FinalizerContext,
    Plan,
    Sleep,
    Step,
    WorkflowCanceled,
)
from kernel.testing import TimeShift, run_until_idle
from tests.tutorial.conftest import Machine

MOVE = Plan("tutorial.move", queue="tutorial", steps=["pack", "carry"])


def never(ctx: ActivityContext) -> str:
    raise AssertionError("this step must not be entered")


def test_an_activity_ends_work_whose_object_is_gone(machine: Machine) -> None:
    """`WorkflowCanceled` ends the workflow without retry and without the failure finalizer."""
    finalized: list[FinalizerContext] = []

    def pack(ctx: ActivityContext) -> str:
        try:
            raise WorkflowCanceled("the customer is gone")
        except Exception as swallowed:  # noqa: BLE001 - the point: this cannot catch it
            return str(swallowed)

    kernel = machine(
        Definition(
            MOVE,
            steps={"pack": Step(pack), "carry": Step(never)},
            failure_finalizer=finalized.append,
        )
    )
    started = kernel.start_or_resume(MOVE, biz_key="move:1")
    run_until_idle(kernel, ["tutorial"])

    ended = kernel.get(started.workflow_id)
    assert (ended.status, ended.steps["pack"].status) == ("canceled", "skipped")
    assert finalized == []


def test_superseding_ends_a_workflow_whoever_holds_it(machine: Machine) -> None:
    """`supersede` needs no claim; what still runs for the instance commits nothing any more."""
    definition = Definition(MOVE, steps={"pack": Step(lambda _: Sleep(60)), "carry": Step(never)})
    kernel = machine(definition)
    started = kernel.start_or_resume(MOVE, biz_key="move:2")
    run_until_idle(kernel, ["tutorial"])

    assert kernel.supersede(started.workflow_id, reason="moved elsewhere")
    assert not kernel.supersede(started.workflow_id, reason="again")

    TimeShift(kernel).advance(seconds=61)
    assert run_until_idle(kernel, ["tutorial"]) == 0
    assert kernel.get(started.workflow_id).status == "canceled"
