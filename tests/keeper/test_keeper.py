"""The keeper's thread: it renews what lives, frees what died, ends what hangs."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import Definition, InstanceStatus, Kernel, StepStatus
from kernel.keeper import ClaimSlots, Keeper, keeper
from kernel.keeper.freeing import free_claim
from kernel.keeper.slots import PublishedClaim
from kernel.store import CapacityStore, InstanceStore
from tests.keeper.children import child, claim, identity
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, ended, start
from tests.kit.waiting import eventually, never

LEASE_SECONDS = 1.5

Keep = Callable[..., Keeper]


def fork_join() -> Definition:
    """Two steps side by side, then one."""
    return definition(
        "keeper.join",
        {"left": lambda _: "l", "right": lambda _: "r", "join": lambda _: "j"},
        depends_on={"left": [], "right": [], "join": ["left", "right"]},
    )


@pytest.fixture
def slots() -> ClaimSlots:
    return ClaimSlots(4)


@pytest.fixture
def own_kernel(make_kernel: MakeKernel) -> Kernel:
    return make_kernel(fork_join(), lease=LEASE_SECONDS)


@pytest.fixture
def keep(own_kernel: Kernel, slots: ClaimSlots) -> Iterator[Keep]:
    """Start a keeper over the slots; it is stopped afterwards."""
    started: list[Keeper] = []

    def begin() -> Keeper:
        started.append(own_kernel.build_keeper(slots, queues=lambda: [QUEUE]))
        started[-1].start()
        return started[-1]

    yield begin
    for each in started:
        each.stop()


@pytest.fixture
def held(own_kernel: Kernel, dead_worker: DeadWorker) -> Callable[[str], PublishedClaim]:
    """Have somebody claim a workflow and begin its first wave; return the claim."""

    def take(biz_key: str) -> PublishedClaim:
        workflow_id = start(own_kernel, fork_join(), biz_key=biz_key)
        instance = dead_worker.begins(own_kernel, workflow_id, lease_over=False)
        assert instance.claim_token
        return claim(workflow_id, instance.claim_token)

    return take


Held = Callable[[str], PublishedClaim]


def is_free(kernel: Kernel, workflow_id: str) -> bool:
    return kernel.get(workflow_id).claim_token is None


def test_a_living_childs_claim_is_kept_beyond_its_lease(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held
) -> None:
    with child() as process:
        kept = held("kept:1")
        slots.publish(0, identity(process), [kept])
        keep()
        never(lambda: own_kernel.drain([QUEUE]), 2.5 * LEASE_SECONDS, "a held claim was taken over")
        assert own_kernel.get(kept.workflow_id).claim_token == kept.token
        assert slots.lost(0) == set()


@pytest.mark.parametrize("is_reaped", [False, True])
def test_a_dead_childs_claim_is_freed_and_all_its_steps_are_suspected(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held, is_reaped: bool
) -> None:
    keep()
    with child() as process:
        left = held("dead:1")
        slots.publish(0, identity(process), [left])
        died_at = _kill(process, is_reaped)
        eventually(lambda: is_free(own_kernel, left.workflow_id), 5, "never freed")
        assert time.monotonic() - died_at < LEASE_SECONDS + 1
    instance = own_kernel.get(left.workflow_id)
    assert instance.steps["left"].status is StepStatus.RUNNING
    assert own_kernel.hints.hints.has_due(QUEUE)
    after = ended(own_kernel, left.workflow_id)
    assert after.status is InstanceStatus.COMPLETED
    assert [after.steps[name].attempt for name in ("left", "right")] == [2, 2]


def test_a_claim_taken_just_before_death_while_others_were_buried_is_freed(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper looks at all children first; burying one may take long, and another goes on."""
    before, late = held("dead:before"), held("dead:late")
    with child() as first, child() as second:
        slots.publish(0, identity(first), [before])
        slots.publish(1, identity(second), [])

        def meanwhile(*args: Any, **values: Any) -> bool:
            if values["token"] == before.token:
                slots.publish_head(1, identity(second), taken=1, cells=1)
                slots.publish_claim(1, 0, late)
                _kill(second, is_reaped=False)
                monkeypatch.undo()
            return free_claim(*args, **values)

        monkeypatch.setattr(keeper, "free_claim", meanwhile)
        _kill(first, is_reaped=False)
        ends = own_kernel.get(late.workflow_id).claimable_time
        keep()
        eventually(lambda: is_free(own_kernel, late.workflow_id), 5, "never freed")
        assert own_kernel.get(late.workflow_id).claimable_time < ends, "its lease freed it"


def test_what_a_dead_child_held_is_freed_whoever_has_its_area_meanwhile(
    own_kernel: Kernel, slots: ClaimSlots, held: Held
) -> None:
    """And nothing of its successor, although it came between the look and the burial."""
    own = own_kernel.build_keeper(slots, queues=lambda: [QUEUE])
    left, of_successor = held("dead:area"), held("living:area")
    with child() as process, child() as successor:
        slots.publish(0, identity(process), [left])
        seen = own._published()
        _kill(process, is_reaped=True)
        slots.publish(0, identity(successor), [of_successor])
        own._bury_dead(seen)
        assert is_free(own_kernel, left.workflow_id)
        assert own_kernel.get(of_successor.workflow_id).claim_token == of_successor.token


def test_the_claim_of_who_took_over_from_a_dead_child_is_left_alone(
    own_kernel: Kernel, held: Held
) -> None:
    taken = held("over:1")
    parts = own_kernel._parts
    freed = free_claim(
        parts.store, own_kernel.hints, parts.permits.handing_on,
        workflow_id=taken.workflow_id, token="that-of-the-dead", culprit=None,
    )  # fmt: skip
    assert not freed
    assert own_kernel.get(taken.workflow_id).claim_token == taken.token


def test_a_dead_childs_claim_that_cannot_be_freed_is_not_renewed(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []

    def fails(*_: object, **__: object) -> bool:
        tries.append(None)
        raise RuntimeError("not today")

    monkeypatch.setattr(keeper, "free_claim", fails)
    with child() as process:
        left = held("dead:2")
        ends = own_kernel.get(left.workflow_id).claimable_time
        slots.publish(0, identity(process), [left])
        _kill(process, True)
        keep()
        eventually(lambda: len(tries) > 3, 8, "nobody tried to free it again")
        assert own_kernel.get(left.workflow_id).claimable_time == ends


def test_permits_are_renewed_before_claims_and_those_of_the_lost_no_more(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, set[str]]] = []

    def renew_permits(_: CapacityStore, tokens: Iterable[str], **__: object) -> None:
        told.append(("permits", set(tokens)))

    renew = InstanceStore.renew

    def renew_claims(self: InstanceStore, claims: list[tuple[str, str]], **lease: Any) -> set[str]:
        told.append(("claims", {token for _, token in claims}))
        return renew(self, claims, **lease)

    monkeypatch.setattr(CapacityStore, "renew", renew_permits)
    monkeypatch.setattr(InstanceStore, "renew", renew_claims)
    kept, gone = held("kept:2"), held("gone:2")
    lost = claim(gone.workflow_id, "that-of-nobody")
    with child() as process:
        slots.publish(0, identity(process), [kept, lost])
        keep()
        eventually(lambda: len(told) >= 4, 8, "not renewed twice")
    both = {kept.token, lost.token}
    rest = [("permits", {kept.token}), ("claims", both)]
    assert told[:4] == [("permits", both), ("claims", both), *rest]


def test_a_claim_that_cannot_be_read_keeps_no_other_of_its_dead_child_held(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held,
    mongo_client: MongoClient[Any], mongo_db_name: str,
) -> None:  # fmt: skip
    instances = mongo_client[mongo_db_name]["workflow_instances"]
    keep()
    with child() as process:
        first, second = held("dead:1"), held("dead:2")
        found = {"workflow_id": first.workflow_id}
        instances.update_one(found, {"$set": {"error": "of a newer shape"}})
        slots.publish(0, identity(process), [first, second])
        _kill(process, is_reaped=True)
        eventually(lambda: is_free(own_kernel, second.workflow_id), 5, "never freed")
    left = instances.find_one(found)
    assert left is not None
    assert left["claim_token"] == first.token


def _kill(process: subprocess.Popen[bytes], is_reaped: bool) -> float:
    process.kill()
    if is_reaped:
        process.wait()
    return time.monotonic()


def test_a_child_past_its_deadline_is_killed_and_only_the_culprit_is_blamed(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held
) -> None:
    with child() as process:
        guilty, innocent = held("guilty:1"), held("innocent:1")
        hung = claim(guilty.workflow_id, guilty.token, deadline=time.monotonic(), step="left")
        slots.publish(0, identity(process), [innocent, hung])
        keep()
        assert process.wait(5) == -9
        eventually(lambda: is_free(own_kernel, guilty.workflow_id), 5, "never freed")
        eventually(lambda: is_free(own_kernel, innocent.workflow_id), 5, "never freed")
    steps = own_kernel.get(guilty.workflow_id).steps
    assert steps["left"].status is StepStatus.RUNNING
    assert (steps["right"].status, steps["right"].attempt) == (StepStatus.PENDING, 1)
    bystander = own_kernel.get(innocent.workflow_id).steps
    assert {bystander[name].status for name in ("left", "right")} == {StepStatus.PENDING}
    assert {bystander[name].recoveries for name in ("left", "right")} == {0}
    assert ended(own_kernel, guilty.workflow_id).status is InstanceStatus.COMPLETED
    assert ended(own_kernel, innocent.workflow_id).status is InstanceStatus.COMPLETED


def test_the_culprit_counts_a_recovery_at_its_next_begin(
    own_kernel: Kernel, slots: ClaimSlots, keep: Keep, held: Held, dead_worker: DeadWorker
) -> None:
    with child() as process:
        guilty = held("guilty:2")
        hung = claim(guilty.workflow_id, guilty.token, deadline=time.monotonic(), step="left")
        slots.publish(0, identity(process), [hung])
        keep()
        eventually(lambda: is_free(own_kernel, guilty.workflow_id), 5, "never freed")
    steps = dead_worker.begins(own_kernel, guilty.workflow_id).steps
    assert steps["left"].recoveries == 1
    assert steps["right"].recoveries == 0


def test_a_lost_claim_is_flagged_and_a_child_that_ignores_it_is_killed(
    own_kernel: Kernel,
    slots: ClaimSlots,
    keep: Keep,
    held: Held,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeper, "_LOST_GRACE_SECONDS", 1.0)
    with child() as process:
        lost = held("lost:1")
        slots.publish(0, identity(process), [lost])
        keep()
        assert own_kernel.supersede(lost.workflow_id, reason="obsolete")
        eventually(lambda: slots.lost(0) == {lost.token}, LEASE_SECONDS, "never flagged")
        flagged_at = time.monotonic()
        assert process.wait(5) == -9
        assert time.monotonic() - flagged_at >= 0.9
    assert own_kernel.get(lost.workflow_id).status is InstanceStatus.CANCELED


def test_a_worker_is_known_while_it_lives(own_kernel: Kernel, keep: Keep) -> None:
    one = keep()
    (beat,) = eventually(own_kernel.workers, 5, "nobody was heard of")
    assert beat.owner == own_kernel.owner
    assert beat.queues == (QUEUE,)
    assert [served.type for served in beat.served] == ["keeper.join"]
    assert not beat.stopping
    one.stop()
    assert own_kernel.workers() == []
