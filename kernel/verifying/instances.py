"""What must hold of one stored instance (pure).

Guarantees that an instance the kernel wrote, seen in one reading at any moment, has no finding: all
of its facts changed in one write. Leaves how they came about to the caller, and comparing two
readings to those who saw both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from kernel import limits
from kernel.model import InstanceStatus, StepState, StepStatus, WorkflowInstance
from kernel.protocol.readiness import sleepers
from kernel.protocol.starting import workflow_id_of
from kernel.verifying.finding import Finding

_HOLDABLE: Final = (InstanceStatus.RUNNING, InstanceStatus.FAILING)
#: Times of one write may differ by rounding.
_ROUNDING: Final = timedelta(seconds=1)
#: No write puts anything off for longer: delays and polls are bounded so, leases and what waits for
#: a permit, a finalizer or another version by hours. A call is held for a week at most.
_LONGEST: Final = timedelta(seconds=limits.DELAY_SECONDS_MAX)
#: One in line looks by itself after an hour at most. It is handed on before that, by a write that
#: tells nothing but its own moment, and whoever writes it may have been stopped for a while.
_IN_LINE: Final = timedelta(seconds=2 * limits.PERMIT_RETRY_SECONDS_MAX)
#: An invariant's number and what contradicts it.
_Fact = tuple[int, str]


def of_instance(instance: WorkflowInstance) -> list[Finding]:
    """Return what contradicts the protocol in one instance."""
    facts = [
        *_of_identity(instance),
        *_of_steps(instance),
        *_of_waits(instance),
        *_of_turn(instance),
        *_of_holder(instance),
        *_of_end(instance),
    ]
    return [
        Finding(
            subject=instance.workflow_id,
            invariant=invariant,
            fact=fact,
            biz_key=instance.biz_key,
            status=instance.status.value,
        )
        for invariant, fact in facts
    ]


def _of_identity(instance: WorkflowInstance) -> Iterator[_Fact]:
    if instance.workflow_id != workflow_id_of(instance.biz_key):
        yield 2, f"workflow_id {instance.workflow_id} is not that of its biz_key"
    if set(instance.plan) != set(instance.steps):
        yield 8, "plan and steps name different steps"
    if instance.fencing_token < 1:
        yield 6, f"round {instance.fencing_token}"


def _of_steps(instance: WorkflowInstance) -> Iterator[_Fact]:
    for name, step in instance.steps.items():
        if (name in instance.output) != (step.status is StepStatus.COMPLETED):
            has = "an output" if name in instance.output else "no output"
            yield 5, f"{name} is {step.status} and has {has}"
        yield from _of_counts(name, step)
        if step.status is not StepStatus.PENDING:
            early = [d for d in step.depends_on if not _is_done(instance, d)]
            if early:
                yield 4, f"{name} is {step.status} before {', '.join(early)}"


def _is_done(instance: WorkflowInstance, step: str) -> bool:
    return step in instance.steps and instance.steps[step].is_done


def _of_counts(name: str, step: StepState) -> Iterator[_Fact]:
    if step.status is StepStatus.COMPLETED and (step.checkpoint or step.resume or step.error):
        yield 5, f"{name} is completed and still has a checkpoint, a resume or an error"
    if step.is_done and step.finished_at is None:
        yield 5, f"{name} is {step.status} and never finished"
    if step.attempt < 0 or step.failures < 0 or step.recoveries < 0:
        yield 7, f"{name} counts below zero"
    if step.failures > step.attempt:
        yield 7, f"{name} failed more often than it was entered: {step.failures} > {step.attempt}"
    if len(set(step.woken_by)) < len(step.woken_by):
        yield 7, f"one signal woke {name} twice"


def _of_waits(instance: WorkflowInstance) -> Iterator[_Fact]:
    waiting = Counter(n for n, s in instance.steps.items() if s.status is StepStatus.WAITING)
    named = Counter(wait.step for wait in instance.waits)
    if instance.status is not InstanceStatus.CANCELED and waiting != named:
        yield 7, f"steps {sorted(waiting)} wait, waits name {sorted(named.elements())}"
    if instance.status is not InstanceStatus.WAITING:
        return
    if not instance.waits:
        yield 10, "waits for nothing"
    times = [wait.poll_time for wait in instance.waits if wait.poll_time is not None]
    due = max(min(times), instance.updated_at) if times else None
    if due is not None and instance.claimable_time > due + _ROUNDING:
        yield 10, f"nobody looks before {instance.claimable_time}, its wait is over at {due}"
    if due is not None and due > instance.updated_at + _LONGEST + _ROUNDING:
        yield 10, f"its wait is over at {due}, longer than any may last"


def _of_turn(instance: WorkflowInstance) -> Iterator[_Fact]:
    """What can go on is claimable as soon as what put it off says, and within a year."""
    if instance.status not in _HOLDABLE:
        return
    at = instance.claimable_time
    # A claim's lease is renewed without any other change, so that only the bound judges it.
    if instance.claim_token is None and at > _put_off_until(instance) + _ROUNDING:
        yield 10, f"nobody looks before {at}, and nothing it waits for says so"
    elif at > instance.updated_at + _LONGEST + _ROUNDING:
        yield 10, f"nobody looks before {at}, longer than anything is put off"


def _put_off_until(instance: WorkflowInstance) -> datetime:
    """Return the latest moment that a fact of the instance names as that of its next turn."""
    blocked = instance.blocked_on
    if blocked is not None and blocked.resources:
        return instance.updated_at + _IN_LINE
    until = blocked.until if blocked is not None else None
    steps = [instance.steps[name].not_before for name in sleepers(instance)]
    first = min((at for at in steps if at is not None), default=None)
    return max(at for at in (instance.updated_at, until, first) if at is not None)


def _of_holder(instance: WorkflowInstance) -> Iterator[_Fact]:
    running = [n for n, s in instance.steps.items() if s.status is StepStatus.RUNNING]
    held = instance.claim_token is not None
    if held and instance.status not in _HOLDABLE:
        yield 4, "is held by a claim"
    # A dead holder's claim that was freed leaves its steps running, for the next one to see; a
    # supersede asks nobody.
    if running and instance.status not in (InstanceStatus.RUNNING, InstanceStatus.CANCELED):
        yield 4, f"{running} run under nobody's claim"


def _of_end(instance: WorkflowInstance) -> Iterator[_Fact]:
    if instance.status.is_terminal != (instance.finished_at is not None):
        yield 6, f"finished_at is {instance.finished_at}"
    if instance.status.is_terminal and instance.waits:
        yield 6, "is over and still waits"
    in_line = instance.blocked_on.resources if instance.blocked_on is not None else ()
    if in_line and (instance.claim_token or instance.status is not InstanceStatus.RUNNING):
        yield 6, f"stands in line for {', '.join(in_line)} and does not wait"
    statuses = [step.status for step in instance.steps.values()]
    match instance.status:
        case InstanceStatus.COMPLETED if not all(s.is_done for s in instance.steps.values()):
            yield 6, f"steps are {[status.value for status in statuses]}"
        case InstanceStatus.COMPLETED if instance.error is not None:
            yield 6, f"has an error: {instance.error.code}"
        case InstanceStatus.FAILED | InstanceStatus.FAILING:
            if StepStatus.FAILED not in statuses:
                yield 6, f"no step failed: {[status.value for status in statuses]}"
            if instance.error is None:
                yield 6, "does not say why it failed"
        case InstanceStatus.CANCELED if instance.error is None:
            yield 6, "does not say why it was canceled"
        case _:
            pass
