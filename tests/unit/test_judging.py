"""A lost answer is judged by the commit's own effect: token and seq, never by revision."""

from typing import Any

import pytest

from kernel.model import InstanceStatus
from kernel.protocol.commit import Commit, Guard
from kernel.protocol.judging import Verdict, judge
from tests.unit.instances import instance


def commit(*, releases: bool, seqs: dict[str, int] | None = None) -> Commit:
    guard = Guard(
        workflow_id="wf",
        statuses=(InstanceStatus.RUNNING,),
        claim_token="mine",
        step_seqs=seqs if seqs is not None else {"a": 3},
    )
    return Commit(label="x", guard=guard, stages=(), releases=releases)


@pytest.mark.parametrize(
    ("token", "seq", "releases", "verdict"),
    [
        ("mine", 3, False, Verdict.SEND_AGAIN),
        ("mine", 4, False, Verdict.APPLIED),
        ("mine", 5, False, Verdict.APPLIED),
        ("mine", 3, True, Verdict.SEND_AGAIN),
        (None, 4, True, Verdict.APPLIED),
        ("theirs", 4, True, Verdict.APPLIED),
        (None, 3, True, Verdict.LOST),
        ("theirs", 3, True, Verdict.LOST),
        ("theirs", 3, False, Verdict.LOST),
        ("theirs", 4, False, Verdict.LOST),
        (None, 4, False, Verdict.LOST),
        ("theirs", 5, True, Verdict.LOST),
    ],
)
def test_token_and_seq_decide(
    token: str | None, seq: int, releases: bool, verdict: Verdict
) -> None:
    fields: dict[str, Any] = {"claim_token": token}
    seen = instance({"a": {"status": "pending", "seq": seq}}, **fields)
    assert judge(seen, commit(releases=releases)) is verdict


def test_of_several_steps_all_must_have_moved() -> None:
    seen = instance({"a": {"status": "pending", "seq": 4}, "b": {"status": "pending", "seq": 7}})
    assert judge(seen, commit(releases=False, seqs={"a": 3, "b": 7})) is Verdict.SEND_AGAIN
    assert judge(seen, commit(releases=False, seqs={"a": 3, "b": 6})) is Verdict.APPLIED


def test_a_commit_without_steps_is_told_by_the_status_it_leaves() -> None:
    still = instance({"a": "failed"}, status="running")
    moved = instance({"a": "failed"}, status="failing")
    assert judge(still, commit(releases=False, seqs={})) is Verdict.SEND_AGAIN
    assert judge(moved, commit(releases=False, seqs={})) is Verdict.APPLIED
