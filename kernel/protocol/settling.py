"""The wave settles: the last step home decides in the same write what becomes of the instance.

By the first that applies (design 1.5): canceled > a failed step → failing > all done → success
finalizer or completed > something else runnable now → claim kept > release. A step that has just
come home pending (retry, yield) does not keep the claim by itself: any worker may take it up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from kernel import limits
from kernel.model import InstanceStatus, StepStatus, WorkflowInstance
from kernel.protocol import finalizing, readiness, spans
from kernel.protocol.beginning import begin_changes
from kernel.protocol.expressions import Earliest, Expression, FieldValue, Lit, Now, Record, Unset
from kernel.protocol.holding import released
from kernel.protocol.homecoming import error_record
from kernel.protocol.outcomes import CANCELED_CODE

Changes = dict[str, Expression]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What the last write of a wave adds: its changes, whether it releases, what it begins."""

    changes: Changes = field(default_factory=dict)
    releases: bool = False
    begins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What settling must know of the definition and the process.

    `fusable(step)` tells whether a single next step may begin in the same write; `stopping` is
    true once this process was asked to stop, so that nothing new begins.
    """

    has_success_finalizer: bool
    has_failure_finalizer: bool
    fusable: Callable[[str], bool]
    stopping: bool = False


def settle(
    instance: WorkflowInstance, wave: tuple[str, ...], now: datetime, policy: Policy
) -> Settlement:
    """Return how the instance goes on; it is seen with the last step's changes applied."""
    match readiness.settled_end(instance):
        case readiness.FinishCanceled():
            return Settlement(changes=canceled(instance), releases=True)
        case readiness.EnterFailing(step):
            return _entering_failing(instance, step, policy)
        case readiness.AllDone():
            return all_done(policy)
        case None:
            pass
    ready = readiness.ready_steps(instance, now)
    others = tuple(name for name in ready if name not in wave)
    if policy.stopping and (ready or readiness.due_waits(instance, now)):
        return Settlement(changes=handed_back(), releases=True)
    if readiness.due_waits(instance, now):
        return Settlement()  # its steps belong into the same next wave
    if not others:
        return Settlement(changes=release(instance), releases=True)
    if len(ready) == 1 and policy.fusable(ready[0]) and _untouched(instance, ready[0]):
        return Settlement(changes=begin_changes(instance, ready[0]), begins=ready)
    return Settlement()


def canceled(instance: WorkflowInstance) -> Changes:
    """End the instance as canceled, with the error of the step that said so."""
    step = next(name for name, state in instance.steps.items() if readiness.is_canceled(state))
    return finish(instance, InstanceStatus.CANCELED) | {"error": FieldValue(f"steps.{step}.error")}


def canceled_at_the_end(instance: WorkflowInstance, message: str) -> Changes:
    """End the instance as canceled because its success finalizer said so."""
    error = error_record(CANCELED_CODE, message, None)
    return finish(instance, InstanceStatus.CANCELED) | {"error": error}


def enter_failing(instance: WorkflowInstance, step: str, *, begin_finalizer: bool) -> Changes:
    """Turn to failing: no step is left open, the finalizer is begun in this write or later."""
    return {
        **close_steps(instance),
        "status": Lit(InstanceStatus.FAILING.value),
        "error": FieldValue(f"steps.{step}.error"),
        "finalizer": finalizing.record("failure", begun=begin_finalizer),
        "blocked_on": Unset(),
    }


def finish(instance: WorkflowInstance, status: InstanceStatus) -> Changes:
    """Reach a terminal status: claim, waits and interrupted steps end with it."""
    return {
        **released(),
        **close_steps(instance),
        "status": Lit(status.value),
        "finished_at": Now(),
        "blocked_on": Unset(),
    }


def close_steps(instance: WorkflowInstance) -> Changes:
    """Close every wait and every interrupted call; their steps are pending again.

    So nothing looks as if it waited or ran. A step found running here is none of this claim's wave,
    which is home: its process died.
    """
    changes: Changes = {"waits": Lit([])}
    for name, state in instance.steps.items():
        if state.status in (StepStatus.WAITING, StepStatus.RUNNING):
            changes[f"steps.{name}.status"] = Lit(StepStatus.PENDING.value)
            changes[f"steps.{name}.seq"] = Lit(state.seq + 1)
            changes[f"steps.{name}.not_before"] = Unset()
            changes[f"steps.{name}.blocked_on"] = Unset()
        if state.status is StepStatus.RUNNING:
            changes.update(spans.close_lost_attempt(name, state))
    return changes


def release(instance: WorkflowInstance) -> Changes:
    """Give the claim back until something can go on, and say what decides it."""
    sleepers = readiness.sleepers(instance)
    paths = tuple(
        f"steps.{n}.not_before" for n in sleepers if instance.steps[n].not_before is not None
    )
    is_running = bool(readiness.eligible_steps(instance))
    wakes_now = len(paths) < len(sleepers)
    return {
        **released(),
        "status": Lit((InstanceStatus.RUNNING if is_running else InstanceStatus.WAITING).value),
        "claimable_time": Now() if wakes_now else Earliest(paths),
        "blocked_on": Unset() if wakes_now else _binding(instance, sleepers),
    }


def handed_back() -> Changes:
    """Give the claim back with the work claimable at once (deploy)."""
    return {**released(), "claimable_time": Now(), "blocked_on": Unset()}


def _binding(instance: WorkflowInstance, sleepers: tuple[str, ...]) -> Expression:
    """Say what decides: a permit that is waited for, so that the line is found by it, or the time.

    Where several steps wait for permits, all their resources are named, with the longest wait.
    """
    in_line = [name for name in sleepers if spans.is_in_line(instance.steps[name])]
    first = min(in_line or sleepers, key=lambda name: _order(instance, name, bool(in_line)))
    path = f"steps.{first}.blocked_on"
    if instance.steps[first].blocked_on is None:
        return Unset()
    blocked = [b for name in in_line if (b := instance.steps[name].blocked_on) is not None]
    return Record(
        {
            "reason": FieldValue(f"{path}.reason"),
            "resources": Lit(sorted({each for b in blocked for each in b.resources})),
            "needs": Lit(sorted({each for b in blocked for each in b.needs})),
            "step": Lit(first),
            "since": FieldValue(f"{path}.since"),
            "until": FieldValue(f"{path}.until"),
        }
    )


def _order(instance: WorkflowInstance, step: str, by_line: bool) -> datetime:
    state = instance.steps[step]
    if by_line and state.blocked_on is not None and state.blocked_on.since is not None:
        return state.blocked_on.since
    return state.not_before or limits.FAR_FUTURE


def _entering_failing(instance: WorkflowInstance, step: str, policy: Policy) -> Settlement:
    begins = policy.has_failure_finalizer and not policy.stopping
    changes = enter_failing(instance, step, begin_finalizer=begins)
    if policy.stopping:
        return Settlement(changes=changes | handed_back(), releases=True)
    return Settlement(changes=changes)


def all_done(policy: Policy) -> Settlement:
    """Every step is done: begin the success finalizer, or complete where there is none."""
    if not policy.has_success_finalizer:
        return Settlement(changes=_completed(), releases=True)
    changes: Changes = {"finalizer": finalizing.record("success", begun=not policy.stopping)}
    if policy.stopping:
        return Settlement(changes=changes | handed_back(), releases=True)
    return Settlement(changes=changes)


def _completed() -> Changes:
    return {
        **released(),
        "status": Lit(InstanceStatus.COMPLETED.value),
        "finished_at": Now(),
        "waits": Lit([]),
        "blocked_on": Unset(),
    }


def _untouched(instance: WorkflowInstance, step: str) -> bool:
    """A step found running needs the loop's look at its recoveries first."""
    return instance.steps[step].status is StepStatus.PENDING
