"""Workers, a provider to call, and an operator's hand on the limits.

Guarantees: every process started here is ended with it. Leaves to others: what a run should have
looked like (`calls`), servers and their databases (the fixtures, or `python -m`).
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel import Plan, Priority, ResourceStatus
from tests.capacity_proof.business import plans
from tests.capacity_proof.calls import Call
from tests.capacity_proof.provider import Provider, running_provider
from tests.capacity_proof.sizes import SLOTS
from tests.kit.waiting import eventually
from tests.trust.stage import Stage

#: How often it is looked whether a workflow of many has ended, seconds.
_LOOK_EVERY = 0.1


@dataclass(slots=True)
class Deployment:
    """One stage with a provider; runs of several tests are told apart by their resource's name."""

    stage: Stage
    provider: Provider
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def limited(
        self,
        name: str,
        *,
        max_concurrency: int | None = None,
        max_starts_per_second: float | None = None,
    ) -> str:
        """Make a resource of this run's own, with limits; return its name, also its group's."""
        resource = f"{name}:{uuid.uuid4().hex[:8]}"
        self.stage.kernel.capacity.set_limit(
            resource,
            max_concurrency=max_concurrency,
            max_starts_per_second=max_starts_per_second,
            reason="test",
            by="test",
        )
        return resource

    def start(
        self,
        group: str,
        *,
        plan: Plan = plans.CALLING,
        priority: Priority = Priority.ASYNC,
        **value: Any,
    ) -> str:
        """Register one workflow that calls under the resource `group`."""
        started = self.stage.kernel.start_or_resume(
            plan,
            biz_key=f"{group}:{next(self._numbers)}",
            input={"group": group, "resources": [group], **value},
            priority=priority,
        )
        assert started.accepted, started.reason
        return started.workflow_id

    def crowd(
        self, group: str, count: int, *, plan: Plan = plans.CALLING, **value: Any
    ) -> list[str]:
        """Register so many of them, in order."""
        return [self.start(group, plan=plan, **value) for _ in range(count)]

    def status(self, resource: str) -> ResourceStatus:
        """Ask how a resource stands."""
        return self.stage.kernel.capacity.status(resource)

    def began(self, group: str, count: int, within: float = 30) -> list[Call]:
        """Wait until so many calls of a group have begun; return all there are."""

        def enough() -> list[Call] | None:
            calls = self.provider.calls(group)
            return calls if len(calls) >= count else None

        found = eventually(enough, within, f"fewer than {count} calls of {group}")
        assert found is not None
        return found

    def waiting(self, resource: str, count: int, within: float = 30) -> None:
        """Wait until so many workflows stand in the line."""
        eventually(
            lambda: self.status(resource).waiting == count, within, f"never {count} in the line"
        )

    def all_ended(self, workflow_ids: list[str], within: float = 60) -> None:
        """Wait until every one has completed; looking seldom, for it takes the time of all."""
        for workflow_id in workflow_ids:
            instance = self.stage.ended(workflow_id, within=within, interval=_LOOK_EVERY)
            assert instance.status == "completed", instance.error


@contextmanager
def deployed(env: Mapping[str, str], folder: Path) -> Iterator[Deployment]:
    """Prepare a deployment without workers on the servers that `env` names."""
    with running_provider() as provider:
        changes = {
            "DJANGO_SETTINGS_MODULE": "tests.capacity_proof.settings",
            plans.PROVIDER: provider.url,
            "BATON_SLOTS_PER_CHILD": str(SLOTS),
        }
        stage = Stage.build(dict(env), folder)
        stage.env.update(changes)
        for plan in (plans.CALLING, plans.ALONE, plans.HELD, plans.FREE):
            stage.kernel.register_plan(plan)
        try:
            yield Deployment(stage, provider)
        finally:
            stage.close()


def with_workers(deployment: Deployment, *, workers: int, children: int) -> None:
    """Start workers of the shared queue, and tick and reconcile, and wait until all serve."""
    stage = deployment.stage
    begun = [
        (name, stage.begin_worker(plans.QUEUE, name=name, concurrency=children))
        for name in (f"proof{number}" for number in range(workers))
    ]
    stage.control()
    for name, worker in begun:
        worker.wait_for_line(f"{name}@test ready", timeout=120)
