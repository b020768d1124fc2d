"""Kernels for tests: on the run's servers, with a database and keys of the test's own.

Guarantees that every kernel made here is closed afterwards. Leaves what runs on it to the test.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kernel import Definition, InstanceStatus, Kernel, KernelConfig, Plan, Step, WorkflowInstance
from kernel.definition import Activity
from kernel.protocol import beginning, finalizing, readiness
from kernel.store import Connection, InstanceStore
from kernel.testing import TimeShift, run_until_idle
from tests.kit import groups

MakeKernel = Callable[..., Kernel]
QUEUE = "work"
LEASE_SECONDS = 15


def definition(
    workflow_type: str,
    activities: Mapping[str, Activity | Step],
    *,
    queue: str = QUEUE,
    depends_on: dict[str, list[str]] | None = None,
    **options: Any,
) -> Definition:
    """Return a definition with its plan, from step name to activity or Step."""
    plan = Plan(workflow_type, queue=queue, steps=list(activities), depends_on=depends_on)
    steps = {
        name: activity if isinstance(activity, Step) else Step(activity)
        for name, activity in activities.items()
    }
    return Definition(plan, steps=steps, **options)


def start(
    kernel: Kernel,
    of: Definition,
    value: object = None,
    *,
    biz_key: str = "test:1",
    fencing_token: int = 1,
) -> str:
    """Register a round and return the workflow_id; it must be accepted."""
    result = kernel.start_or_resume(
        of.plan, biz_key=biz_key, input=value, fencing_token=fencing_token
    )
    assert result.accepted, result.reason
    return result.workflow_id


def ended(kernel: Kernel, workflow_id: str, *, hops: int = 40) -> WorkflowInstance:
    """Run an instance to its end, letting time pass wherever it waits for some."""
    for _ in range(hops):
        run_until_idle(kernel, [QUEUE])
        instance = kernel.get(workflow_id)
        if instance.status.is_terminal:
            return instance
        pass_time_until_due(kernel, workflow_id)
    raise AssertionError(f"not at an end after {hops} waits: {instance!r}")


def pass_time_until_due(kernel: Kernel, workflow_id: str) -> None:
    """Move this kernel's time to when the instance may go on; the servers share our clock."""
    now = datetime.now(UTC) + timedelta(milliseconds=kernel.clock.offset_ms)
    wait = kernel.get(workflow_id).claimable_time - now
    TimeShift(kernel).advance(seconds=max(0.0, wait.total_seconds()) + 0.01)


class DeadWorker:
    """A worker that takes a claim, begins what is ready, and is never heard of again."""

    def __init__(self, mongo_url: str, database: str) -> None:
        self._connection = Connection(mongo_url, database=database)

    def begins(
        self, kernel: Kernel, workflow_id: str, *, lease_over: bool = True
    ) -> WorkflowInstance:
        """Leave an instance as a death inside its ready steps leaves it; its lease runs out."""
        store = InstanceStore(self._connection, kernel.clock)
        token = secrets.token_hex(16)
        stored = store.claim(
            workflow_id,
            fingerprints=[kernel.get(workflow_id).definition_fingerprint],
            token=token,
            owner="elsewhere:1:1",
            lease_ms=LEASE_SECONDS * 1000,
        )
        assert stored is not None, "the instance is not claimable"
        ready = readiness.ready_steps(stored.instance, stored.now)
        if stored.instance.finalizer is not None:
            assert store.commit(finalizing.begin(stored.instance))
        elif ready and stored.instance.status is InstanceStatus.RUNNING:
            assert store.commit(beginning.begin(stored.instance, ready))
        if lease_over:
            TimeShift(kernel).advance(seconds=LEASE_SECONDS + 1)
        return kernel.get(workflow_id)

    def store(self, kernel: Kernel) -> InstanceStore:
        """Return the store as this worker sees it, on the kernel's clock."""
        return InstanceStore(self._connection, kernel.clock)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def dead_worker(mongo_url: str, mongo_db_name: str) -> Iterator[DeadWorker]:
    """A worker beside the kernels of this test, on the same database."""
    worker = DeadWorker(mongo_url, mongo_db_name)
    yield worker
    worker.close()


@pytest.fixture
def make_kernel(
    mongo_url: str, redis_url: str, mongo_db_name: str, key_prefix: str
) -> Iterator[MakeKernel]:
    """Make kernels on this test's database; all are closed afterwards."""
    made: list[Kernel] = []

    def make(*definitions: Definition, with_redis: bool = True, **config: Any) -> Kernel:
        settings: dict[str, Any] = {
            "mongo_url": mongo_url,
            "redis_url": redis_url if with_redis else None,
            "database": mongo_db_name,
            "key_prefix": key_prefix,
            "lease": LEASE_SECONDS,
            **groups.of_kernel(),
        }
        kernel = Kernel.connect(KernelConfig(**(settings | config)))
        made.append(kernel)
        kernel.ensure_schema()
        for each in definitions:
            kernel.register(each)
        return kernel

    yield make
    for kernel in made:
        kernel.close()


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Kernel:
    """A kernel with nothing registered."""
    return make_kernel()
