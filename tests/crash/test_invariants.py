"""The checker finds what is wrong: each document here breaks one rule."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kernel import WorkflowInstance, workflow_id_of
from tests.crash import invariants

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DONE: dict[str, Any] = {"status": "completed", "finished_at": NOON}


def instance(**changes: Any) -> WorkflowInstance:
    """Return a completed instance of two steps, with changes."""
    whole: dict[str, Any] = {
        "workflow_id": workflow_id_of("key"),
        "type": "t",
        "queue": "q",
        "biz_key": "key",
        "fencing_token": 1,
        "status": "completed",
        "priority": 1,
        "definition_fingerprint": "f",
        "plan": ["a", "b"],
        "steps": {"a": DONE, "b": DONE | {"depends_on": ["a"]}},
        "output": {"a": 1, "b": 2},
        "claimable_time": NOON,
        "created_at": NOON,
        "round_started_at": NOON,
        "updated_at": NOON,
        "finished_at": NOON,
    }
    return WorkflowInstance.model_validate(whole | changes)


def open_instance(**changes: Any) -> WorkflowInstance:
    """Return a running instance whose first step is in flight under a claim, with changes."""
    return instance(
        **{
            "status": "running",
            "steps": {"a": {"status": "running"}, "b": {"depends_on": ["a"]}},
            "output": {},
            "finished_at": None,
            "claim_token": "mine",
        }
        | changes
    )


def test_what_is_right_has_no_violations() -> None:
    assert invariants.of_instances([instance()]) == []
    assert invariants.of_instances([open_instance()]) == []


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (instance(workflow_id="wf_other"), "not that of its biz_key"),
        (instance(output={"a": 1}), "b is completed and has no output"),
        (instance(claim_token="x"), "held by a claim"),
        (instance(finished_at=None), "finished_at is None"),
        (instance(steps={"a": DONE, "b": {"status": "pending"}}), "has an output"),
        (instance(status="failed"), "does not say why it failed"),
        (instance(waits=[{"step": "a", "kind": "timer", "since": NOON}]), "still waits"),
        (instance(steps={"a": {"status": "running"}, "b": DONE}), "under nobody's claim"),
        (open_instance(status="waiting", claim_token=None), "waits for nothing"),
        (
            open_instance(
                steps={"a": {"status": "pending"}, "b": {"status": "running", "depends_on": ["a"]}}
            ),
            "b is running before a",
        ),
    ],
)
def test_broken_rule_is_named(broken: WorkflowInstance, says: str) -> None:
    assert says in "\n".join(invariants.of_instance(broken))


def test_two_instances_of_one_biz_key_are_named() -> None:
    assert "2 instances" in invariants.of_instances([instance(), instance()])[0]


def test_intent_that_contradicts_its_instance_is_named() -> None:
    assert "no instance" in invariants.of_intent("dispatched", 1, None)[0]
    assert "knows 1" in invariants.of_intent("dispatched", 2, instance())[0]
    assert "withdrawn" in invariants.of_intent("withdrawn", 1, open_instance())[0]
    assert invariants.of_intent("pending", 1, None) == []


def test_hints_that_outlive_their_work_are_named() -> None:
    keys = ["p:{q}:ready:1", "p:{q}:rotation", "p:marker", "p:{q}:timers"]
    assert invariants.of_hints(keys) == [
        "left in Redis: p:{q}:ready:1",
        "left in Redis: p:{q}:timers",
    ]
