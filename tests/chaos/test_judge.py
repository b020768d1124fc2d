"""The judge of a soak notices what must not be; a soak that cannot fail would prove nothing."""

import random
from typing import Any

import pytest

from kernel import WorkflowInstance
from tests.chaos import faults, judge
from tests.chaos.counting import Call
from tests.chaos.fleet import Fleet
from tests.chaos.load import Promise
from tests.unit.instances import instance


def completed(number: int = 1, attempt: int = 1) -> WorkflowInstance:
    """A completed instance of one step, whose result is of round `number`."""
    found = instance({"one": {"status": "completed", "attempt": attempt}}, status="completed")
    output = {"one": {"round": number, "attempt": attempt}}
    return found.model_copy(update={"output": output})


def entry(found: WorkflowInstance, attempt: int = 1, **changes: Any) -> judge.Line:
    line = {
        "what": "enter", "workflow_id": found.workflow_id, "step": "one", "round": 1,
        "attempt": attempt, "resumed": False,
    }  # fmt: skip
    return {**line, **changes}


def of_entries(found: WorkflowInstance, *lines: judge.Line) -> list[str]:
    return list(judge._of_entries({found.biz_key: found}, list(lines)))


def test_what_was_cut_off_and_done_again_is_right() -> None:
    found = completed(attempt=2)
    assert of_entries(found, entry(found, 1), entry(found, 2)) == []


@pytest.mark.parametrize(
    ("attempts", "sentence"),
    [
        ([1, 1], "attempt 1 of one was entered 2 times"),
        ([1, 2], "entered as attempt 2, which is not recorded"),
    ],
)
def test_an_entry_too_many_is_told(attempts: list[int], sentence: str) -> None:
    found = completed()
    wrong = of_entries(found, *(entry(found, attempt) for attempt in attempts))
    assert any(sentence in each for each in wrong), wrong


def test_an_entry_after_completion_is_told() -> None:
    found = completed(attempt=2)
    found = found.model_copy(update={"output": {"one": {"round": 1, "attempt": 1}}})
    wrong = of_entries(found, entry(found, 1), entry(found, 2))
    assert wrong == [f"{found.biz_key}: one was entered after it had completed"]


def test_an_entry_of_nobodys_round_is_told() -> None:
    found = completed()
    assert "round 7, which never began" in of_entries(found, entry(found, round=7))[0]
    assert "does not exist" in of_entries(found, entry(found, workflow_id="wf_other"))[0]


@pytest.mark.parametrize(
    ("promise", "found", "sentence"),
    [
        (Promise(("completed",)), None, "does not exist"),
        (Promise(("canceled",)), completed(), "ended completed instead of canceled"),
        (Promise(("completed",), round=2), completed(), "ended in round 1 of 2"),
        (Promise(("completed",)), completed(number=2), "a result of round 2"),
    ],
)
def test_an_end_that_was_not_promised_is_told(
    promise: Promise, found: WorkflowInstance | None, sentence: str
) -> None:
    wrong = list(judge._of_ends({"key": promise}, {"key": found} if found else {}))
    assert sentence in wrong[0]
    assert list(judge._of_ends({"key": Promise(("completed",))}, {"key": completed()})) == []


def test_one_permit_too_many_is_told_and_a_lost_claim_holds_none() -> None:
    def call(attempt: int, begun: float) -> Call:
        who = {"workflow_id": found.workflow_id, "round": 1, "attempt": attempt}
        return Call(who, begun, begun + 1)

    found = completed().model_copy(update={"output": {"call": {"round": 1, "attempt": 2}}})
    instances = {found.biz_key: found}
    assert judge.permitted(instances, [call(1, 0), call(2, 0)]) == [call(2, 0)]
    in_turn = [call(2, begun) for begun in (0, 0, 1)]
    assert list(judge.of_limits(instances, in_turn)) == []
    at_once = [call(2, begun) for begun in (0, 0, 0.5)]
    assert "3 calls held permits" in next(judge.of_limits(instances, at_once))


def test_every_kind_of_fault_is_drawn_and_a_hurt_target_is_left_alone(tmp_path: Any) -> None:
    fleet = Fleet(tmp_path, workers=2, children=1, lots=random.Random(1))
    hurting = faults.Faults(fleet, random.Random(1), pause=1.0)
    hurting._hurts = [faults.Hurt("redis", float("inf"), lambda: None)]
    assert hurting.is_hurt("redis")
    assert list(faults._flush_redis(hurting)) == []
    assert list(faults._stop_redis(hurting)) == []
    assert all(weight > 0 for weight, _ in faults._KINDS.values())
