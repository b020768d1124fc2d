"""The wave settles by the first that applies: canceled, failed, all done, runnable, release."""

from typing import Any

import pytest

from kernel.limits import FAR_FUTURE
from kernel.model import InstanceStatus
from kernel.protocol.apply import apply_changes
from kernel.protocol.settling import Policy, Settlement, settle
from tests.unit.instances import CANCELED, EARLIER, LATER, NOW, document, instance, waits

FREE: dict[str, list[str]] = {"a": [], "b": []}
BACKOFF = {"status": "pending", "not_before": LATER}


def policy(*, success: bool = False, failure: bool = False, stopping: bool = False) -> Policy:
    return Policy(
        has_success_finalizer=success,
        has_failure_finalizer=failure,
        fusable=lambda _: True,
        stopping=stopping,
    )


def settled(steps: dict[str, Any], wave: tuple[str, ...], **kind: Any) -> tuple[Settlement, Any]:
    """Return a settlement and the instance it makes."""
    depends_on, fields = kind.pop("depends_on", FREE), kind.pop("fields", {})
    given = instance(steps, depends_on=depends_on, **fields)
    result = settle(given, wave, NOW, policy(**kind))
    after = apply_changes(document(steps, depends_on=depends_on, **fields), result.changes, NOW)
    return result, after


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ({"a": CANCELED, "b": "failed"}, "canceled"),
        ({"a": CANCELED, "b": "completed"}, "canceled"),
        ({"a": CANCELED, "b": "pending"}, "canceled"),
        ({"a": "failed", "b": "completed"}, "failing"),
        ({"a": "failed", "b": "pending"}, "failing"),
        ({"a": "failed", "b": {"status": "waiting", "not_before": LATER}}, "failing"),
        ({"a": "completed", "b": "skipped"}, "completed"),
        ({"a": "completed", "b": BACKOFF}, "running"),
        ({"a": "completed", "b": {"status": "waiting", "not_before": LATER}}, "waiting"),
    ],
)
def test_the_status_after_a_wave_follows_from_its_steps(steps: dict[str, Any], status: str) -> None:
    _, after = settled(steps, ("a", "b"))
    assert after["status"] == status


def test_a_canceled_wave_closes_its_waits_and_keeps_who_said_so() -> None:
    result, after = settled(
        {"a": CANCELED, "b": {"status": "waiting", "not_before": LATER}},
        ("a", "b"),
        fields={"waits": waits(("b", LATER))},
    )
    assert result.releases
    assert after["waits"] == []
    assert after["error"]["message"] == "gone"
    assert after["steps"]["b"]["status"] == "pending"
    assert "claim_token" not in after


def test_failing_keeps_the_claim_and_begins_the_finalizer_in_the_same_write() -> None:
    result, after = settled({"a": "failed", "b": "completed"}, ("a", "b"), failure=True)
    assert not result.releases
    assert after["finalizer"]["attempt"] == 1
    assert after["finalizer"]["started_at"] == NOW


def test_a_success_finalizer_begins_before_the_instance_completes() -> None:
    result, after = settled({"a": "completed", "b": "completed"}, ("b",), success=True)
    assert (result.releases, after["status"]) == (False, InstanceStatus.RUNNING)
    assert after["finalizer"]["kind"] == "success"


def test_the_only_next_step_begins_in_the_same_write() -> None:
    result, after = settled(
        {"a": "completed", "b": "pending"}, ("a",), depends_on={"a": [], "b": ["a"]}
    )
    assert result.begins == ("b",)
    assert (after["steps"]["b"]["status"], after["steps"]["b"]["attempt"]) == ("running", 1)


def test_several_next_steps_are_left_to_the_loop_under_the_same_claim() -> None:
    result, _ = settled(
        {"a": "completed", "b": "pending", "c": "pending"},
        ("a",),
        depends_on={"a": [], "b": ["a"], "c": ["a"]},
    )
    assert result == Settlement()


def test_a_due_wait_joins_the_next_wave_before_it_begins() -> None:
    result, _ = settled(
        {"a": "completed", "b": "pending", "c": {"status": "waiting", "not_before": EARLIER}},
        ("a", "c"),
        depends_on={"a": [], "b": ["a"], "c": []},
        fields={"waits": waits(("c", EARLIER))},
    )
    assert result == Settlement()


def test_an_interrupted_step_is_not_begun_without_a_look_at_its_recoveries() -> None:
    result, _ = settled({"a": "completed", "b": {"status": "running"}}, ("a",))
    assert result == Settlement()


def test_a_step_that_yielded_alone_gives_the_claim_back_claimable_at_once() -> None:
    result, after = settled({"a": "pending", "b": "completed"}, ("a",))
    assert result.releases
    assert (after["claimable_time"], after["status"]) == (NOW, "running")
    assert "blocked_on" not in after


def test_a_release_waits_for_the_earliest_of_all_and_says_which() -> None:
    blocked = {"reason": "timer", "since": EARLIER, "until": LATER}
    _, after = settled(
        {
            "a": {"status": "waiting", "not_before": FAR_FUTURE},
            "b": {"status": "pending", "not_before": LATER, "blocked_on": blocked},
        },
        ("a", "b"),
    )
    assert after["claimable_time"] == LATER
    assert after["blocked_on"]["step"] == "b"
    assert after["status"] == "running"


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ({"a": "completed", "b": "pending"}, "running"),
        ({"a": "failed", "b": "completed"}, "failing"),
    ],
)
def test_a_stopping_process_begins_nothing_and_hands_its_claim_back(
    steps: dict[str, Any], status: str
) -> None:
    result, after = settled(steps, ("a",), failure=True, success=True, stopping=True)
    assert result.releases
    assert not result.begins
    assert (after["status"], after["claimable_time"]) == (status, NOW)
    assert after["steps"]["b"].get("attempt", 0) == 0
    assert after.get("finalizer", {}).get("attempt", 0) == 0


@pytest.mark.parametrize("ending", [CANCELED, "failed"])
def test_a_step_whose_process_died_is_left_pending_by_the_end(ending: Any) -> None:
    dead = {"status": "running", "seq": 3, "attempt": 1, "started_at": EARLIER}
    _, after = settled({"a": ending, "b": dead}, ("a",), fields={"interrupted_at": NOW})
    closed = after["steps"]["b"]
    assert (closed["status"], closed["seq"], closed["attempt"]) == ("pending", 4, 1)
    assert closed["attempts"][-1]["outcome"] == "lost"
