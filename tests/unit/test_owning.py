"""Giving claims and handing them back: what counts as an attempt and what as a death."""

from typing import Any

import pytest

from kernel.protocol import owning
from kernel.protocol.apply import apply_commit
from tests.unit.instances import EARLIER, LATER, NOW, document, instance


def after(commit: Any, steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return apply_commit(document(steps, **fields), commit, NOW)


@pytest.mark.parametrize(
    ("interrupted_at", "attempt", "is_begun"),
    [
        (EARLIER, 2, False),  # begun under this claim and not entered: given back
        (LATER, 3, True),  # begun by an earlier holder: its death still counts
    ],
)
def test_a_finalizer_that_was_not_entered_is_handed_back_as_if_untouched(
    interrupted_at: Any, attempt: int, is_begun: bool
) -> None:
    fields = {
        "status": "failing",
        "interrupted_at": interrupted_at,
        "finalizer": {"kind": "failure", "attempt": 3, "started_at": NOW},
    }
    seen = after(owning.hand_back(instance({"a": "failed"}, **fields)), {"a": "failed"}, **fields)
    assert seen["finalizer"]["attempt"] == attempt
    assert ("started_at" in seen["finalizer"]) == is_begun
    assert "claim_token" not in seen
    assert seen["claimable_time"] == NOW


def test_a_step_begun_and_not_entered_gets_its_attempt_back() -> None:
    steps = {"a": {"status": "running", "attempt": 2, "seq": 5, "started_at": EARLIER}}
    seen = after(owning.hand_back(instance(steps), ("a",)), steps)
    assert seen["steps"]["a"]["status"] == "pending"
    assert (seen["steps"]["a"]["attempt"], seen["steps"]["a"]["seq"]) == (1, 6)


def test_a_superseded_instance_keeps_no_claim_wait_or_resume() -> None:
    steps = {"a": {"status": "pending", "resume": {"kind": "timer"}}}
    fields: dict[str, Any] = {"waits": [{"step": "a", "kind": "timer"}]}
    seen = after(owning.supersede(instance(steps, **fields), "newer"), steps, **fields)
    assert (seen["status"], seen["waits"]) == ("canceled", [])
    assert "claim_token" not in seen
    assert "resume" not in seen["steps"]["a"]
