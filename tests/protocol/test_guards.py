"""Each guard by itself: a write whose belief has become wrong writes nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from kernel import ActivityContext, InstanceStatus, Kernel, Priority, Signal, Sleep, WaitForSignal
from kernel.protocol import beginning, homecoming, owning, signaling, starting
from kernel.protocol.coming_home import home_alone
from kernel.store import Connection, InstanceStore
from kernel.store.port import Stored
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start


def first(ctx: ActivityContext) -> object:
    """Fail for good in the first round, wait in the way the input asks for otherwise."""
    if ctx.fencing_token == 1 and ctx.input == "fail":
        raise ValueError("first round")
    if ctx.resume is None and ctx.input == "sleep":
        return Sleep(60)
    if ctx.resume is None and ctx.input == "signal":
        return WaitForSignal("event", wait_key="k", generation=1, poll_after=60)
    return "done"


ORDER = definition("guard.order", {"a": first, "b": lambda _: "b"})


class Stale:
    """A store as a worker has it that read an instance some time ago."""

    def __init__(self, kernel: Kernel, url: str, database: str) -> None:
        self.kernel = kernel
        self.connection = Connection(url, database=database)
        self.store = InstanceStore(self.connection, kernel.clock)

    def claim(self, workflow_id: str) -> Stored:
        stored = self.store.claim(
            workflow_id,
            fingerprints=[ORDER.plan.fingerprint],
            token=secrets.token_hex(16),
            owner="elsewhere:1:1",
            lease_ms=15_000,
        )
        assert stored is not None
        return stored

    def taken_over(self, workflow_id: str) -> tuple[Stored, Stored]:
        """Return a claim whose lease ran out, and the one that took over."""
        before = self.claim(workflow_id)
        assert self.store.commit(beginning.begin(before.instance, ("a",)))
        stale = self.store.read(workflow_id)
        assert stale is not None
        TimeShift(self.kernel).advance(seconds=16)
        return stale, self.claim(workflow_id)


@pytest.fixture
def stale(make_kernel: MakeKernel, mongo_url: str, mongo_db_name: str) -> Iterator[Stale]:
    made = Stale(make_kernel(ORDER), mongo_url, mongo_db_name)
    yield made
    made.connection.close()


def test_a_holder_that_was_taken_over_commits_nothing(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    old, _ = stale.taken_over(workflow_id)
    home = home_alone(old.instance, "a", homecoming.completed(old.instance, "a", "late")).commit
    before = stale.kernel.get(workflow_id)
    assert not stale.store.commit(home)
    assert not stale.store.commit(owning.hand_back(old.instance))
    assert stale.kernel.get(workflow_id) == before


def test_a_holder_that_was_taken_over_renews_nothing_and_is_told(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    old, new = stale.taken_over(workflow_id)
    token = old.instance.claim_token
    assert token is not None
    assert stale.store.renew([(workflow_id, token)], lease_ms=600_000) == {token}
    assert stale.kernel.get(workflow_id).claimable_time == new.instance.claimable_time


def test_freeing_a_dead_holder_leaves_its_successor_alone(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    old, new = stale.taken_over(workflow_id)
    for culprit in (None, "a", owning.NOBODY):
        assert not stale.store.commit(owning.free_dead(old.instance, culprit))
    assert stale.kernel.get(workflow_id).claim_token == new.instance.claim_token


@pytest.mark.parametrize("kind", ["sleep", "signal"])
def test_nobody_wakes_a_step_under_somebodys_claim(stale: Stale, kind: str) -> None:
    workflow_id = start(stale.kernel, ORDER, kind)
    stale.kernel.drain([QUEUE])
    waiting = stale.store.read(workflow_id)
    assert waiting is not None
    assert waiting.instance.status is InstanceStatus.WAITING
    TimeShift(stale.kernel).advance(seconds=61)
    due = owning.activate_due(waiting.instance, stale.store.now())
    assert due is not None
    # Somebody else wakes it first and takes the claim; the revision is put back, so that only the
    # claim itself can refuse.
    assert stale.store.commit(due)
    held = stale.claim(workflow_id)
    stale.connection.collection("workflow_instances").update_one(
        {"workflow_id": workflow_id}, {"$set": {"revision": waiting.instance.revision}}
    )
    assert not stale.store.commit(due)
    assert stale.kernel.get(workflow_id).claim_token == held.instance.claim_token


def test_an_activation_read_before_another_change_is_refused(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER, "signal")
    stale.kernel.drain([QUEUE])
    waiting = stale.store.read(workflow_id)
    assert waiting is not None
    signals = [_signal(workflow_id, name) for name in ("one", "two")]
    early, late = (signaling.activate(waiting.instance, [signal]) for signal in signals)
    assert early is not None
    assert late is not None
    assert stale.store.commit(early)
    assert not stale.store.commit(late)
    resume = stale.kernel.get(workflow_id).steps["a"].resume
    assert resume is not None
    assert resume.signal_id == "one"


def test_a_spent_signal_matches_no_wait_of_the_step_it_has_woken(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER, "signal")
    stale.kernel.drain([QUEUE])
    instance = stale.kernel.get(workflow_id)
    signal = _signal(workflow_id, "one")
    assert signaling.matched_steps(instance, signal) == ("a",)
    spent = instance.steps["a"].model_copy(update={"woken_by": ("zero", "one")})
    again = instance.model_copy(update={"steps": {**instance.steps, "a": spent}})
    assert signaling.matched_steps(again, signal) == ()
    assert signaling.activate(again, [signal]) is None
    assert signaling.matched_steps(again, _signal(workflow_id, "two")) == ("a",)


def test_of_two_replays_read_at_once_the_later_one_writes_nothing(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER, "fail")
    failed = ended(stale.kernel, workflow_id)
    assert failed.status is InstanceStatus.FAILED
    replays = [
        starting.replay(failed, value=name, fencing_token=token, priority=Priority.ASYNC)
        for name, token in (("second", 3), ("late", 2))
    ]
    assert stale.store.commit(replays[0])
    # Its round fails as well, and only then the other one's write arrives.
    stale.connection.collection("workflow_instances").update_one(
        {"workflow_id": workflow_id}, {"$set": {"status": "failed"}}
    )
    assert not stale.store.commit(replays[1])
    assert stale.kernel.get(workflow_id).fencing_token == 3


def test_a_priority_is_never_lowered_by_a_write_that_comes_late(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    instance = stale.kernel.get(workflow_id)
    raised = [starting.raise_priority(instance, p) for p in (Priority.REALTIME, Priority.ASYNC)]
    assert stale.store.commit(raised[0])
    assert not stale.store.commit(raised[1])
    assert stale.kernel.get(workflow_id).priority is Priority.REALTIME


def test_a_lease_that_ran_out_while_mongodb_was_away_is_left_to_its_holder_for_a_while(
    stale: Stale, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, free = (start(stale.kernel, ORDER, biz_key=key) for key in ("held", "free"))
    stale.claim(held)
    TimeShift(stale.kernel).advance(seconds=16)
    monkeypatch.setattr(stale.connection, "came_back_within", lambda _seconds: True)

    def take(workflow_id: str) -> Stored | None:
        return stale.store.claim(
            workflow_id,
            fingerprints=[ORDER.plan.fingerprint],
            token=secrets.token_hex(16),
            owner="elsewhere:1:1",
            lease_ms=15_000,
        )

    assert take(held) is None
    assert take(free) is not None
    monkeypatch.setattr(stale.connection, "came_back_within", lambda _seconds: False)
    assert take(held) is not None


def _signal(workflow_id: str, signal_id: str) -> Signal:
    return Signal(
        signal_id=signal_id,
        workflow_id=workflow_id,
        signal_type="event",
        wait_key="k",
        generation=1,
    )


def test_whoever_meets_another_protocol_puts_off_only_what_it_has_read(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    read = stale.store.read(workflow_id)
    assert read is not None
    held = stale.claim(workflow_id)
    assert stale.store.commit(owning.hand_back(held.instance))
    before = stale.kernel.get(workflow_id)
    assert not stale.store.commit(owning.defer_incompatible(read.instance, "f" * 64, seconds=3600))
    assert stale.kernel.get(workflow_id) == before


def test_a_holder_that_was_taken_over_leaves_nothing_unread(stale: Stale) -> None:
    workflow_id = start(stale.kernel, ORDER)
    late, successor = stale.taken_over(workflow_id)
    token = str(late.instance.claim_token)
    commit = owning.leave_unread(workflow_id, token, ("a",), "steps", seconds=30)
    assert not stale.store.commit(commit)
    assert stale.kernel.get(workflow_id).claim_token == successor.instance.claim_token
