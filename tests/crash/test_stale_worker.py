"""A worker stopped past its lease wakes up and finds that its work is no longer its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from signal import SIGCONT, SIGSTOP

import pytest

from kernel import Plan
from tests.crash.worker import HELD, HELD_WAVE, Settings, arguments
from tests.kit.processes import Child, python
from tests.kit.waiting import eventually

PLANS = pytest.mark.parametrize("plan", [HELD, HELD_WAVE], ids=["single step", "mid-wave"])


@contextmanager
def stopped_worker(settings: Settings, plan: Plan) -> Iterator[tuple[Child, str]]:
    """A worker whose group was stopped inside the held step, and its workflow."""
    kernel = settings.connect()
    kernel.ensure_schema()
    workflow_id = kernel.start_or_resume(plan, biz_key="stopped").workflow_id
    beside = "quick" if plan is HELD_WAVE else "before"
    with python(*arguments(settings)) as worker:
        worker.wait_for_line("ready")
        eventually(lambda: settings.ledger.entered("held") == 1)
        eventually(lambda: kernel.get(workflow_id).steps[beside].status == "completed")
        worker.send_group(SIGSTOP)
        kernel.close()
        yield worker, workflow_id


def counts(settings: Settings, plan: Plan) -> dict[str, int]:
    return {step: settings.ledger.entered(step) for step in plan.steps}


@PLANS
def test_worker_stopped_past_its_lease_changes_nothing_of_what_another_finished(
    settings: Settings, plan: Plan
) -> None:
    kernel = settings.connect()
    with stopped_worker(settings, plan) as (first, workflow_id):
        with python(*arguments(settings)) as second:
            settings.let_go(2)
            eventually(lambda: kernel.get(workflow_id).status == "completed", timeout=30)
            assert "claim lost" not in second.output
        finished = kernel.get(workflow_id)
        settings.let_go(1)
        first.send_group(SIGCONT)
        first.wait_for_line("claim lost")
        first.wait_for_line("drained 1")
    assert finished.output["held"] == {"attempt": 2}
    assert kernel.get(workflow_id) == finished
    assert counts(settings, plan) == {step: 2 if step == "held" else 1 for step in plan.steps}
    kernel.close()


@PLANS
def test_commit_of_a_stale_worker_misses_while_another_is_at_the_same_step(
    settings: Settings, plan: Plan
) -> None:
    """No renewal warns the first worker here: its commit meets the fence by itself."""
    settings = replace(settings, lease=600)
    later = replace(settings, clock_offset=700)
    kernel = later.connect()
    with (
        stopped_worker(settings, plan) as (first, workflow_id),
        python(*arguments(later)) as second,
    ):
        eventually(lambda: settings.ledger.entered("held") == 2, timeout=30)
        held = kernel.get(workflow_id)
        settings.let_go(1)
        first.send_group(SIGCONT)
        first.wait_for_line("claim lost.*wrote nothing")
        first.wait_for_line("drained 1")
        assert kernel.get(workflow_id) == held
        settings.let_go(2)
        eventually(lambda: kernel.get(workflow_id).status == "completed", timeout=30)
        assert "claim lost" not in second.output
    assert kernel.get(workflow_id).output["held"] == {"attempt": 2}
    assert counts(settings, plan) == {step: 2 if step == "held" else 1 for step in plan.steps}
    kernel.close()
