"""Groups of claims when one of them is broken: the others run, and none waits for its lease."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import ActivityContext, Kernel, Step, StepStatus
from kernel.engine import drain, running
from kernel.engine.threads import ActivityThreads
from kernel.errors import StoreUnavailable
from kernel.store import InstanceStore
from kernel.store.claiming import InstanceClaims
from tests.capacity.test_passing import Line
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.waiting import eventually


class Group:
    """Six instances of one plan, in a process that claims them all at once."""

    def __init__(self, make_kernel: MakeKernel, *, with_redis: bool = True) -> None:
        self.ran: list[str] = []
        self.of = definition("test.group", {"a": self._note, "b": lambda _: None})
        self.kernel: Kernel = make_kernel(self.of, slots_per_child=8, with_redis=with_redis)
        self.ids = [start(self.kernel, self.of, biz_key=f"k{n}") for n in range(6)]

    def _note(self, ctx: ActivityContext) -> None:
        self.ran.append(ctx.biz_key)

    def spoil(self, mongo: MongoClient[Any], name: str, change: Mapping[str, Any]) -> None:
        """Write what no version of this code would, into the third."""
        found = {"workflow_id": self.ids[2]}
        mongo[name]["workflow_instances"].update_one(found, {"$set": change})


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("change", [{"waits": 3}, {"steps.b.blocked_on": 3}])
def test_a_document_this_version_cannot_read_keeps_no_other_from_running(
    make_kernel: MakeKernel,
    mongo_client: MongoClient[Any],
    mongo_db_name: str,
    with_redis: bool,
    change: dict[str, Any],
) -> None:
    group = Group(make_kernel, with_redis=with_redis)
    group.spoil(mongo_client, mongo_db_name, change)
    group.kernel.drain([QUEUE])
    assert sorted(group.ran) == ["k0", "k1", "k3", "k4", "k5"]


def test_an_outage_among_single_claims_leaves_those_before_it_running(
    make_kernel: MakeKernel,
    mongo_client: MongoClient[Any],
    mongo_db_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = Group(make_kernel)
    group.spoil(mongo_client, mongo_db_name, {"revision": "no number"})
    claim, calls = InstanceClaims.claim, []

    def failing(self: InstanceClaims, workflow_id: str, **options: Any) -> Any:
        calls.append(workflow_id)
        if len(calls) == 3:
            raise StoreUnavailable("away")
        return claim(self, workflow_id, **options)

    monkeypatch.setattr(InstanceClaims, "claim", failing)
    group.kernel.drain([QUEUE])
    group.kernel.drain([QUEUE])
    assert len(calls) > 2
    assert sorted(group.ran) == ["k0", "k1", "k3", "k4", "k5"]


def test_candidates_nobody_could_be_asked_about_stand_in_their_lanes_again(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(make_kernel)

    def away(*_: object, **__: object) -> Any:
        raise StoreUnavailable("away")

    monkeypatch.setattr(InstanceClaims, "claim_group", away)
    with pytest.raises(StoreUnavailable):
        group.kernel.drain([QUEUE])
    monkeypatch.undo()
    group.kernel.drain([QUEUE])
    assert sorted(group.ran) == [f"k{n}" for n in range(6)]


def test_an_outage_at_the_look_after_those_not_granted_costs_nobody_his_turn(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(make_kernel)
    claim_group, read, looks = InstanceClaims.claim_group, InstanceStore.read, []

    def four_at_most(self: InstanceClaims, ids: Any, **options: Any) -> Any:
        return claim_group(self, ids[:4], **options)

    def away_at_first(self: InstanceStore, workflow_id: str, **options: Any) -> Any:
        looks.append(workflow_id)
        if len(looks) == 1:
            raise StoreUnavailable("away")
        return read(self, workflow_id, **options)

    monkeypatch.setattr(InstanceClaims, "claim_group", four_at_most)
    monkeypatch.setattr(InstanceStore, "read", away_at_first)
    group.kernel.drain([QUEUE])
    assert looks
    assert sorted(group.ran) == [f"k{n}" for n in range(6)]


def test_claims_that_could_not_be_read_at_once_are_read_again(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(make_kernel)
    under, calls = InstanceClaims._under, []

    def failing(self: InstanceClaims, *told: Any) -> Any:
        calls.append(told)
        if len(calls) == 1:
            raise StoreUnavailable("away")
        return under(self, *told)

    monkeypatch.setattr(InstanceClaims, "_under", failing)
    group.kernel.drain([QUEUE])
    assert len(group.ran) == 6
    assert {group.kernel.get(wid).steps["a"].attempt for wid in group.ids} == {1}


def test_a_claim_that_finds_no_thread_keeps_no_other_from_running(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(make_kernel)
    submit, calls = ActivityThreads.submit, []

    def failing(self: ActivityThreads, call: Any) -> Any:
        calls.append(call)
        if len(calls) == 1:
            raise RuntimeError("can't start new thread")
        return submit(self, call)

    monkeypatch.setattr(ActivityThreads, "submit", failing)
    with pytest.raises(RuntimeError, match="new thread"):
        group.kernel.drain([QUEUE])
    assert len(group.ran) == 5
    assert group.kernel._parts.machine.motion._count == 0


def test_a_claim_its_slot_was_passed_on_to_runs_whatever_the_one_before_raised(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(make_kernel, "one", "two")
    run_claim, raised = running.run_claim, list[Any]()

    def run(machine: Any, held: Any, *told: Any) -> None:
        run_claim(machine, held, *told)
        if held.following is not None and not raised:
            raised.append(held)
            raise RuntimeError("after it was passed on")

    monkeypatch.setattr(drain, "run_claim", run)
    with pytest.raises(RuntimeError, match="passed on"):
        line.kernel.drain([QUEUE])
    assert line.ran == ["first", "one", "two"]


@pytest.mark.parametrize("slots", [1, 4])
def test_resources_that_end_the_process_when_named_fail_their_step_alone(
    make_kernel: MakeKernel, slots: int
) -> None:
    ran: list[str] = []

    def names(_: Any) -> str:
        sys.exit("misconfigured")

    bad = definition("test.bad", {"a": Step(lambda _: None, traffic_resource=names)})
    good = definition("test.good", {"a": lambda ctx: ran.append(ctx.biz_key)})
    kernel = make_kernel(bad, good, slots_per_child=slots)
    failed = start(kernel, bad, biz_key="bad")
    slot = kernel.build_slot(lambda: [QUEUE], poll_interval=0.1)
    slot.start()
    try:
        eventually(lambda: kernel.get(failed).steps["a"].status is StepStatus.FAILED)
        start(kernel, good, biz_key="good")
        eventually(lambda: ran == ["good"])
    finally:
        slot.stop()


def test_what_code_does_to_values_it_was_given_or_returned_is_seen_by_nobody(
    make_kernel: MakeKernel,
) -> None:
    seen: list[Any] = []
    kept: dict[str, Any] = {"n": [1]}

    def first(ctx: ActivityContext) -> dict[str, Any]:
        ctx.input["given"].append("by the first")
        return kept

    def second(ctx: ActivityContext) -> None:
        kept["n"].append("too late")
        seen.append(copy.deepcopy((ctx.input, dict(ctx.outputs))))
        ctx.outputs["a"]["n"].append("by the second")

    def third(ctx: ActivityContext) -> None:
        seen.append(copy.deepcopy((ctx.input, dict(ctx.outputs))))

    of = definition("test.own", {"a": first, "b": second, "c": third})
    kernel = make_kernel(of)
    start(kernel, of, {"given": []})
    kernel.drain([QUEUE])
    assert seen[0] == ({"given": []}, {"a": {"n": [1]}})
    assert seen[1] == ({"given": []}, {"a": {"n": [1]}, "b": None})
