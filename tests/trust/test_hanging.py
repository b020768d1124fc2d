"""Code that never comes back, or lets nobody else run, holds nothing longer than it may."""

import pytest

from kernel import InstanceStatus
from tests.trust.business import plans
from tests.trust.stage import GRACE_SECONDS, LEASE_SECONDS, Stage

pytestmark = pytest.mark.timeout(180)

#: The engine's own look at the end of the grace, the keeper's turn, and a new child's start.
_SLACK_SECONDS = 5


def test_hanging_code_frees_its_workflow_and_patient_code_keeps_its_claim(stage: Stage) -> None:
    worker = stage.worker(concurrency=3)
    hangs = [
        stage.start(plans.DEAF, "hang:deaf"),
        stage.start(plans.REGEX, "hang:regex"),
    ]
    held = 3 * LEASE_SECONDS + 1
    patient = stage.start(plans.GREEDY, "hang:greedy", {"seconds": held})
    for workflow_id in hangs:
        first = stage.entered(workflow_id)
        again = stage.entered(workflow_id, times=2)
        assert again["at"] - first["at"] <= 1 + GRACE_SECONDS + _SLACK_SECONDS
        assert again["pid"] != first["pid"]
        ended = stage.ended(workflow_id)
        assert ended.status is InstanceStatus.COMPLETED
        assert ended.steps["hang"].attempt == 2
    kept = stage.ended(patient, within=held + 20)
    assert kept.status is InstanceStatus.COMPLETED
    assert kept.output["hold"] == {"held": held}
    assert [line["attempt"] for line in stage.lines(patient, "enter", "hold")] == [1]
    assert "is past its deadline" in worker.output
