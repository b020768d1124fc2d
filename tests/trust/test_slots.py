"""A child with several claims: after a death, a hang or a deploy each comes to its right end."""

import os
import signal

import pytest

from kernel import InstanceStatus, StepStatus
from tests.kit.waiting import eventually
from tests.trust.business import plans
from tests.trust.stage import Stage

pytestmark = pytest.mark.timeout(240)

SLOTS = {"BATON_SLOTS_PER_CHILD": "4"}


def test_claims_of_one_child_run_side_by_side_and_alone_after_its_death(stage: Stage) -> None:
    stage.worker(concurrency=1, **SLOTS)
    ids = [stage.start(plans.GATED, f"slots:{n}") for n in range(4)]
    children = {stage.entered(workflow_id)["pid"] for workflow_id in ids}
    assert len(children) == 1
    os.kill(children.pop(), signal.SIGKILL)
    for workflow_id in ids:
        ended = stage.ended(workflow_id)
        assert ended.status is InstanceStatus.COMPLETED
        assert (ended.steps["gate"].attempt, ended.steps["gate"].recoveries) == (2, 0)
    again = [line for line in stage.lines(step="gate") if line["attempt"] == 2]
    turns = [(line["what"], line["workflow_id"]) for line in again]
    # Nobody knows which of them killed the child, so each is tried without the others.
    assert [what for what, _ in turns] == ["enter", "leave"] * 4
    assert all(turns[n][1] == turns[n + 1][1] for n in range(0, 8, 2))


def test_a_hang_ends_its_child_and_is_blamed_on_its_own_step_only(stage: Stage) -> None:
    stage.worker(concurrency=1, **SLOTS)
    beside = [stage.start(plans.GATED, f"beside:{n}") for n in range(3)]
    child = {stage.entered(workflow_id)["pid"] for workflow_id in beside}
    deaf = stage.start(plans.DEAF, "slots:deaf")
    assert {stage.entered(deaf)["pid"]} == child
    stage.entered(deaf, times=2)
    assert stage.ended(deaf).steps["hang"].attempts[0].outcome == "lost"
    for workflow_id in beside:
        ended = stage.ended(workflow_id)
        assert ended.status is InstanceStatus.COMPLETED
        assert ended.steps["gate"].attempt == 2


def test_a_deploy_lets_every_claim_finish_its_step_and_hands_it_back(stage: Stage) -> None:
    first = stage.worker(name="first", concurrency=1, **SLOTS)
    ids = [stage.start(plans.GATED, f"deploy:{n}") for n in range(4)]
    for workflow_id in ids:
        stage.entered(workflow_id)
    first.send(signal.SIGTERM)
    first.wait_for_line("Warm shutdown", timeout=30)
    stage.open_gate()
    eventually(lambda: all(_is_handed_back(stage, workflow_id) for workflow_id in ids), 60)
    stage.worker(name="second", concurrency=1, **SLOTS)
    for workflow_id in ids:
        ended = stage.ended(workflow_id)
        assert ended.status is InstanceStatus.COMPLETED
        assert [state.attempt for state in ended.steps.values()] == [1, 1]


def _is_handed_back(stage: Stage, workflow_id: str) -> bool:
    instance = stage.kernel.get(workflow_id)
    is_home = instance.steps["gate"].status is StepStatus.COMPLETED
    return is_home and instance.claim_token is None
