"""Groups of claims and commits: each statement keeps its guard, each caller gets its own answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pymongo.errors import BulkWriteError
from pymongo.results import BulkWriteResult

from kernel import InstanceStatus, Kernel, StepStatus
from kernel.errors import StoreUnavailable, ValueTooLarge
from kernel.protocol import beginning, homecoming
from kernel.protocol.coming_home import home_alone
from kernel.protocol.commit import Commit
from kernel.store import Connection, InstanceStore
from kernel.store.group_commits import commit_group
from kernel.store.port import Stored
from tests.kit.kernels import LEASE_SECONDS, MakeKernel, definition, start
from tests.protocol.failing_mongo import LOST_ANSWERS, FailingMongo

OF = definition("group.order", {"a": lambda _: "a", "b": lambda _: "b"})


class Group:
    """Some instances of one plan, and a store as a worker has it."""

    def __init__(self, kernel: Kernel, url: str, database: str, size: int) -> None:
        self.kernel = kernel
        self.connection = Connection(url, database=database)
        self.store = InstanceStore(self.connection, kernel.clock)
        self.ids = [start(kernel, OF, biz_key=f"k{n}") for n in range(size)]

    def claim(self, *workflow_ids: str) -> dict[str, Stored]:
        answers = self.answers(*workflow_ids)
        return {wid: stored for wid, stored in answers.items() if stored is not None}

    def answers(self, *workflow_ids: str) -> dict[str, Stored | None]:
        return self.store.claim_group(
            workflow_ids or self.ids,
            fingerprints=[OF.plan.fingerprint],
            seal=secrets.token_hex(8),
            owner="here:1:1",
            lease_ms=LEASE_SECONDS * 1000,
        )

    def begins(self) -> list[Commit]:
        held = self.claim()
        return [beginning.begin(held[wid].instance, ("a",)) for wid in self.ids]

    def send(self, commits: list[Commit]) -> list[bool | Exception]:
        instances = self.connection.collection("workflow_instances")
        return commit_group(instances, self.kernel.clock, commits)

    def statuses(self) -> list[StepStatus]:
        return [self.kernel.get(wid).steps["a"].status for wid in self.ids]


@pytest.fixture
def group(make_kernel: MakeKernel, mongo_url: str, mongo_db_name: str) -> Iterator[Group]:
    made = Group(make_kernel(OF), mongo_url, mongo_db_name, size=4)
    yield made
    made.connection.close()


def test_a_group_of_claims_grants_what_is_due_and_leaves_the_rest(group: Group) -> None:
    [held] = group.claim(group.ids[1]).values()
    assert group.kernel.supersede(group.ids[2], reason="obsolete")
    granted = group.claim(*group.ids, "wf_" + "0" * 32)
    assert set(granted) == {group.ids[0], group.ids[3]}
    for workflow_id, stored in granted.items():
        kept = group.kernel.get(workflow_id)
        assert kept.claim_token == stored.instance.claim_token
        assert stored.instance.claimable_time == stored.now + timedelta(seconds=LEASE_SECONDS)
    assert group.kernel.get(group.ids[1]).claim_token == held.instance.claim_token
    assert group.claim() == {}


def test_claims_of_a_group_have_a_token_each(group: Group) -> None:
    tokens = {stored.instance.claim_token for stored in group.claim().values()}
    assert len(tokens) == 4
    assert tokens == {group.kernel.get(wid).claim_token for wid in group.ids}


def test_a_candidate_the_server_refuses_to_change_costs_the_others_nothing(group: Group) -> None:
    refused = group.ids[1]
    group.connection.database.get_collection("workflow_instances").update_one(
        {"workflow_id": refused}, {"$set": {"priority": 9}}, bypass_document_validation=True
    )
    answers = group.answers()
    assert answers.pop(refused) is None
    assert set(answers) == {*group.ids} - {refused}
    for workflow_id, stored in answers.items():
        assert stored is not None
        assert stored.instance.claim_token == group.kernel.get(workflow_id).claim_token


def test_all_of_a_group_that_hold_their_guard_are_told_so(group: Group) -> None:
    assert group.send(group.begins()) == [True] * 4
    assert group.statuses() == [StepStatus.RUNNING] * 4


def test_a_lost_claim_is_told_to_its_own_caller_only(group: Group) -> None:
    commits = group.begins()
    assert group.kernel.supersede(group.ids[1], reason="obsolete")
    assert group.send(commits) == [True, False, True, True]
    assert group.statuses()[1] is StepStatus.PENDING


def test_a_commit_that_was_applied_before_is_told_so(group: Group) -> None:
    commits = group.begins()
    assert group.send(commits[:2]) == [True, True]
    assert group.send(commits) == [True] * 4
    assert [group.kernel.get(wid).steps["a"].attempt for wid in group.ids] == [1] * 4


def test_a_statement_the_server_refuses_costs_only_itself(group: Group) -> None:
    assert group.send(group.begins()) == [True] * 4
    outputs = ["a", "b", "x" * (9 * 1024 * 1024), "d"]
    # No document can be past 16 MiB; the engine checks far below that, so this one is made by hand.
    mongo = group.connection.collection("workflow_instances")
    mongo.update_one({"workflow_id": group.ids[2]}, {"$set": {"output.b": outputs[2]}})
    commits = [_home(group.kernel, wid, out) for wid, out in zip(group.ids, outputs, strict=True)]
    answers = group.send(commits)
    assert [answer is True for answer in answers] == [True, True, False, True]
    assert isinstance(answers[2], StoreUnavailable)
    done, out = StepStatus.COMPLETED, StepStatus.RUNNING
    assert group.statuses() == [done, done, out, done]
    with pytest.raises(ValueTooLarge):
        group.store.commit(commits[2])


def test_a_statement_too_large_to_travel_leaves_the_outcome_of_its_group_open(
    group: Group,
) -> None:
    assert group.send(group.begins()) == [True] * 4
    commits = [_home(group.kernel, wid, "x" * (17 * 1024 * 1024)) for wid in group.ids[:1]]
    commits += [_home(group.kernel, wid, "small") for wid in group.ids[1:]]
    with pytest.raises(StoreUnavailable):
        group.send(commits)


class Deaf:
    """A collection on whose bulk writes nothing is done, and how that is told."""

    def __init__(self, collection: Any, details: dict[str, Any] | None = None) -> None:
        self.find = collection.find
        self._details = details

    def bulk_write(self, *_: object, **__: object) -> BulkWriteResult:
        if self._details is not None:
            raise BulkWriteError(self._details)
        return BulkWriteResult({"nMatched": 0}, acknowledged=True)


def test_a_statement_that_found_nothing_under_a_claim_still_held_is_left_open(
    group: Group,
) -> None:
    commits = group.begins()
    instances: Any = Deaf(group.connection.collection("workflow_instances"))
    answers = commit_group(instances, group.kernel.clock, commits)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers), "not lost"


def test_a_group_the_majority_has_not_confirmed_is_left_open(group: Group) -> None:
    commits = group.begins()
    details = {"nMatched": 4, "writeErrors": [], "writeConcernErrors": [{"code": 64}]}
    instances: Any = Deaf(group.connection.collection("workflow_instances"), details)
    with pytest.raises(StoreUnavailable, match="majority"):
        commit_group(instances, group.kernel.clock, commits)


def _home(kernel: Kernel, workflow_id: str, output: str) -> Commit:
    instance = kernel.get(workflow_id)
    return home_alone(instance, "a", homecoming.completed(instance, "a", output)).commit


def test_a_step_never_begins_twice_however_a_group_is_repeated(group: Group) -> None:
    commits = group.begins()
    for part in (commits[:1], commits[1:3], commits, commits):
        group.send(part)
    assert [group.kernel.get(wid).steps["a"].attempt for wid in group.ids] == [1] * 4


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingMongo]:
    with FailingMongo(tmp_path_factory.mktemp("failing-mongo")) as server:
        yield server
        server.kill()


@pytest.mark.parametrize("how", LOST_ANSWERS)
def test_groups_whose_answers_get_lost_lose_and_repeat_nothing(
    mongo: FailingMongo, make_kernel: MakeKernel, eager_driver: None, how: str
) -> None:
    entered: list[str] = []
    of = definition("group.lost", {n: lambda ctx: entered.append(ctx.biz_key) for n in "ab"})
    # A failure on demand changes nothing the driver could be told of, so it has to look often.
    url = f"{mongo.url}&heartbeatFrequencyMS=20"
    database = f"t_{secrets.token_hex(6)}"
    kernel = make_kernel(of, mongo_url=url, database=database, slots_per_child=6)
    ids = [start(kernel, of, biz_key=f"k{n}") for n in range(6)]
    with mongo.failing("update", how=how, times=3):
        kernel.drain(["work"])
    kernel.drain(["work"])
    for workflow_id in ids:
        instance = kernel.get(workflow_id)
        assert instance.status is InstanceStatus.COMPLETED, instance
    assert sorted(entered) == sorted(f"k{n}" for n in range(6) for _ in "ab")
