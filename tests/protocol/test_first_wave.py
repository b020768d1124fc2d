"""The first wave begins with the claim: the same facts as in two writes, and only where allowed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from kernel import Definition, InstanceStatus, Kernel, Step, StepStatus
from kernel.protocol import beginning
from kernel.protocol.first_wave import begun_with_claim, first_wave
from kernel.store import Connection, InstanceStore
from kernel.store.port import Stored
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, ended, start

LINE = definition("first.line", {"a": lambda _: "a", "b": lambda _: "b"})
FAN = definition(
    "first.fan",
    {name: lambda _: 1 for name in ("left", "right", "join")},
    depends_on={"left": [], "right": [], "join": ["left", "right"]},
)


class Claims:
    """A store as a worker has it, which claims with and without beginning."""

    def __init__(self, url: str, database: str, kernel: Kernel) -> None:
        self.connection = Connection(url, database=database)
        self.store = InstanceStore(self.connection, kernel.clock)

    def take(self, workflow_id: str, of: Definition, *, begins: bool, group: bool) -> Stored:
        wave = first_wave(of)
        options: dict[str, Any] = {
            "fingerprints": [of.plan.fingerprint],
            "owner": "here:1:1",
            "lease_ms": 15_000,
            "begins": {of.plan.fingerprint: wave.changes} if begins and wave else {},
        }
        if group:
            seal = secrets.token_hex(8)
            stored = self.store.claim_group([workflow_id], seal=seal, **options)[workflow_id]
        else:
            stored = self.store.claim(workflow_id, token=secrets.token_hex(16), **options)
        assert stored is not None
        return stored


@pytest.fixture
def make_claims(mongo_url: str, mongo_db_name: str) -> Iterator[Any]:
    made: list[Claims] = []

    def make(kernel: Kernel) -> Claims:
        made.append(Claims(mongo_url, mongo_db_name, kernel))
        return made[-1]

    yield make
    for each in made:
        each.connection.close()


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("of", [LINE, FAN], ids=["line", "fan"])
def test_one_write_leaves_what_claim_and_begin_leave(
    make_kernel: MakeKernel, make_claims: Any, of: Definition, group: bool
) -> None:
    kernel = make_kernel(of)
    claims = make_claims(kernel)
    ids = [start(kernel, of, {"n": 1}, biz_key=f"k{n}") for n in range(2)]
    wave = first_wave(of)
    assert wave is not None
    fused = claims.take(ids[0], of, begins=True, group=group).instance
    assert begun_with_claim(fused, wave) == wave.steps
    split = claims.take(ids[1], of, begins=False, group=group).instance
    assert begun_with_claim(split, wave) == ()
    assert claims.store.commit(beginning.begin(split, wave.steps))
    one, other = (kernel.get(wid).model_dump() for wid in ids)
    # Two writes raise the revision twice; all else differs by identity and moment only.
    assert one.pop("revision") == other.pop("revision") - 1
    assert _shape(one) == _shape(other)


def test_nothing_begins_with_the_claim_of_an_instance_touched_before(
    make_kernel: MakeKernel, make_claims: Any, dead_worker: DeadWorker
) -> None:
    kernel = make_kernel(LINE)
    died = dead_worker.begins(kernel, start(kernel, LINE))
    taken = make_claims(kernel).take(died.workflow_id, LINE, begins=True, group=False).instance
    assert begun_with_claim(taken, first_wave(LINE)) == ()
    assert taken.steps["a"].attempt == 1
    assert taken.steps["a"].recoveries == 0


@pytest.mark.parametrize("group", [False, True])
def test_a_death_after_the_claim_counts_as_one_inside_the_first_step(
    make_kernel: MakeKernel, make_claims: Any, group: bool
) -> None:
    kernel = make_kernel(LINE)
    workflow_id = start(kernel, LINE)
    make_claims(kernel).take(workflow_id, LINE, begins=True, group=group)
    instance = ended(kernel, workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.steps["a"].attempt == 2
    assert [attempt.outcome for attempt in instance.steps["a"].attempts] == ["lost", "completed"]


def test_a_stop_between_claim_and_first_step_gives_the_attempt_back(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = make_kernel(LINE)
    workflow_id = start(kernel, LINE)
    store, claim = kernel._parts.store, kernel._parts.store.claim

    def claim_and_stop(*args: Any, **kwargs: Any) -> Stored | None:
        stored = claim(*args, **kwargs)
        kernel.request_stop()
        return stored

    monkeypatch.setattr(store, "claim", claim_and_stop)
    kernel.run_once([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.claim_token is None
    assert instance.steps["a"].status is StepStatus.PENDING
    assert instance.steps["a"].attempt == 0


def test_permits_are_asked_for_before_anything_begins() -> None:
    def named(**options: Any) -> Definition:
        return definition("first.named", {"a": Step(lambda _: 1, **options), "b": lambda _: 2})

    assert first_wave(named()) is not None
    assert first_wave(named(traffic_resource="psp")) is None
    held = definition("first.held", {"a": lambda _: 1}, workflow_resources=lambda _: ["tenant"])
    assert first_wave(held) is None


def _shape(value: Any) -> Any:
    """Replace what differs between any two instances."""
    if isinstance(value, dict):
        drop = {"workflow_id", "biz_key", "claim_token"}
        return {key: _shape(item) for key, item in value.items() if key not in drop}
    if isinstance(value, (list, tuple)):
        return [_shape(item) for item in value]
    if isinstance(value, datetime):
        return "moment"
    # Milliseconds between two moments.
    return "ms" if isinstance(value, int) and value > 5 else value
