"""What must hold of stored facts whenever nobody is writing them (design 1.3, 1.6).

Pure functions from facts to sentences: an empty list means that nothing is wrong. Guarantees that
they need nothing but documents and key names, so that they hold for any workflow. Leaves how the
facts came about to the caller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from kernel import InstanceStatus, StepStatus, WorkflowInstance, workflow_id_of

_DONE = (StepStatus.COMPLETED, StepStatus.SKIPPED)


def of_instance(instance: WorkflowInstance) -> list[str]:
    """Return what contradicts the protocol in one instance."""
    found = [
        *_of_identity(instance),
        *_of_steps(instance),
        *_of_waits(instance),
        *_of_holder(instance),
        *_of_end(instance),
    ]
    return [f"{instance.biz_key} ({instance.status}): {sentence}" for sentence in found]


def of_instances(instances: Iterable[WorkflowInstance]) -> list[str]:
    """Return what contradicts the protocol in any instance, or between them (I2)."""
    all_of_them = list(instances)
    keys = Counter(instance.biz_key for instance in all_of_them)
    doubled = [f"{key}: {n} instances of one biz_key" for key, n in keys.items() if n > 1]
    return doubled + [line for instance in all_of_them for line in of_instance(instance)]


def of_intent(status: str | None, number: int, instance: WorkflowInstance | None) -> list[str]:
    """Return what contradicts the outbox: a row's dispatch status and round, and its instance."""
    match status:
        case "dispatched" if instance is None:
            return [f"round {number} is dispatched and has no instance"]
        case "dispatched" if instance is not None and instance.fencing_token < number:
            return [f"round {number} is dispatched, its instance knows {instance.fencing_token}"]
        case "withdrawn" if instance is not None and not instance.status.is_terminal:
            return [f"is withdrawn and its instance is {instance.status}"]
        case _:
            return []


def of_hints(keys: Iterable[str]) -> list[str]:
    """Return which hints are left in Redis when nothing is running, waiting or queued any more."""
    kinds = (":ready:", ":timers", ":leases")
    return [f"left in Redis: {key}" for key in keys if any(kind in key for kind in kinds)]


def _of_identity(instance: WorkflowInstance) -> Iterator[str]:
    if instance.workflow_id != workflow_id_of(instance.biz_key):
        yield f"workflow_id {instance.workflow_id} is not that of its biz_key"
    if set(instance.plan) != set(instance.steps):
        yield "plan and steps name different steps"
    if instance.fencing_token < 1:
        yield f"round {instance.fencing_token}"


def _of_steps(instance: WorkflowInstance) -> Iterator[str]:
    for name, step in instance.steps.items():
        if (name in instance.output) != (step.status is StepStatus.COMPLETED):
            has = "an output" if name in instance.output else "no output"
            yield f"{name} is {step.status} and has {has}"
        if step.status is StepStatus.COMPLETED and (step.checkpoint or step.resume or step.error):
            yield f"{name} is completed and still has a checkpoint, a resume or an error"
        if step.is_done and step.finished_at is None:
            yield f"{name} is {step.status} and never finished"
        if step.attempt < 0 or step.failures < 0 or step.recoveries < 0:
            yield f"{name} counts below zero"
        if step.status is not StepStatus.PENDING:
            early = [d for d in step.depends_on if instance.steps[d].status not in _DONE]
            if early:
                yield f"{name} is {step.status} before {', '.join(early)}"


def _of_waits(instance: WorkflowInstance) -> Iterator[str]:
    waiting = sorted(n for n, s in instance.steps.items() if s.status is StepStatus.WAITING)
    named = sorted(wait.step for wait in instance.waits)
    if instance.status is not InstanceStatus.CANCELED and waiting != named:
        yield f"steps {waiting} wait, waits name {named}"
    if instance.status is InstanceStatus.WAITING and not instance.waits:
        yield "waits for nothing"


def _of_holder(instance: WorkflowInstance) -> Iterator[str]:
    running = [n for n, s in instance.steps.items() if s.status is StepStatus.RUNNING]
    held = instance.claim_token is not None
    if held and instance.status not in (InstanceStatus.RUNNING, InstanceStatus.FAILING):
        yield "is held by a claim"
    if running and not held and instance.status is not InstanceStatus.CANCELED:
        yield f"{running} run under nobody's claim"


def _of_end(instance: WorkflowInstance) -> Iterator[str]:
    if instance.status.is_terminal != (instance.finished_at is not None):
        yield f"finished_at is {instance.finished_at}"
    if instance.status.is_terminal and instance.waits:
        yield "is over and still waits"
    statuses = [step.status for step in instance.steps.values()]
    match instance.status:
        case InstanceStatus.COMPLETED if any(status not in _DONE for status in statuses):
            yield f"steps are {statuses}"
        case InstanceStatus.COMPLETED if instance.error is not None:
            yield f"has an error: {instance.error.code}"
        case InstanceStatus.FAILED | InstanceStatus.FAILING:
            if StepStatus.FAILED not in statuses:
                yield f"no step failed: {statuses}"
            if instance.error is None:
                yield "does not say why it failed"
        case InstanceStatus.CANCELED if instance.error is None:
            yield "does not say why it was canceled"
        case _:
            pass
