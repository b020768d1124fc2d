"""Workers with other code, or with a type switched off, leave alone what is not theirs."""

import pytest

from kernel import InstanceStatus, Reason
from tests.kit.waiting import eventually, never
from tests.trust.business import plans
from tests.trust.stage import Stage

pytestmark = pytest.mark.timeout(240)


def test_old_instances_wait_for_old_code_and_say_so(stage: Stage) -> None:
    stage.worker(name="new", TRUST_EXTRA_STEP="four")
    old = stage.start(plans.CHAIN, "old")
    why = eventually(
        lambda: (
            stage.kernel.why(old).reason is Reason.INCOMPATIBLE_DEFINITION and stage.kernel.why(old)
        ),
        20,
        "the new worker never said that it does not know it",
    )
    assert why
    assert plans.CHAIN.fingerprint[:12] in why.sentence
    assert why.until is not None
    assert why.since is not None
    assert (why.until - why.since).total_seconds() == pytest.approx(3600, abs=5)
    assert not stage.lines(old)


def test_old_code_still_takes_old_instances_beside_new_code(stage: Stage) -> None:
    stage.worker(name="old", concurrency=1)
    long = stage.start(plans.GATED, "busy")
    stage.entered(long)
    eventually(stage.kernel.workers, 15, "no worker was heard of")
    stage.worker(name="new", TRUST_EXTRA_STEP="four")
    old = stage.start(plans.CHAIN, "old")
    why = eventually(
        lambda: (
            stage.kernel.why(old).reason is Reason.INCOMPATIBLE_DEFINITION and stage.kernel.why(old)
        ),
        20,
        "the new worker never said that it does not know it",
    )
    assert why
    assert why.until is not None
    assert why.since is not None
    assert (why.until - why.since).total_seconds() == pytest.approx(30, abs=5)
    stage.open_gate()
    assert stage.ended(old, within=80).status is InstanceStatus.COMPLETED


def test_a_type_that_is_switched_off_stays_put(stage: Stage) -> None:
    stage.worker(BATON_TYPES_OFF=plans.CHAIN.type)
    off = stage.start(plans.CHAIN, "off")
    on = stage.start(plans.SLEEPY, "on", {"seconds": 0.1})
    assert stage.ended(on).status is InstanceStatus.COMPLETED
    never(lambda: stage.lines(off), 5.5, "a type that is off was run")
    why = stage.kernel.why(off)
    assert why.reason is Reason.NO_WORKER, why
