"""A worker stopped past its lease wakes up and finds that its work is no longer its own."""

from signal import SIGCONT, SIGSTOP

import pytest

from kernel import Plan, WorkflowInstance
from tests.crash.worker import HELD, HELD_WAVE, QUEUE, Settings, arguments
from tests.kit.processes import python
from tests.kit.waiting import eventually


@pytest.mark.parametrize("plan", [HELD, HELD_WAVE], ids=["single step", "mid-wave"])
def test_worker_stopped_past_its_lease_commits_nothing(settings: Settings, plan: Plan) -> None:
    kernel = settings.connect()
    kernel.ensure_schema()
    ledger = settings.ledger
    workflow_id = kernel.start_or_resume(plan, biz_key="stopped").workflow_id

    def finished_here() -> WorkflowInstance | None:
        kernel.tick()
        kernel.drain([QUEUE])
        instance = kernel.get(workflow_id)
        return instance if instance.status.is_terminal else None

    with python(*arguments(settings)) as first:
        first.wait_for_line("ready")
        eventually(lambda: ledger.entered("held") == 1)
        beside = "quick" if plan is HELD_WAVE else "before"
        eventually(lambda: kernel.get(workflow_id).steps[beside].status == "completed")
        first.send_group(SIGSTOP)
        finished = eventually(finished_here, timeout=30)
        settings.go.touch()
        first.send_group(SIGCONT)
        first.wait_for_line("claim lost")
        first.wait_for_line("drained 1")
    assert finished is not None
    assert (finished.status, finished.output["held"]) == ("completed", {"attempt": 2})
    assert kernel.get(workflow_id) == finished
    counts = {step: ledger.entered(step) for step in plan.steps}
    assert counts == {step: 2 if step == "held" else 1 for step in plan.steps}
    kernel.close()
