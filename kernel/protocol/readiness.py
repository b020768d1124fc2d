"""What the holder of a claim does next, decided from the stored facts alone (pure, design 1.5).

One algorithm serves linear plans and DAGs: a linear plan is a DAG in which each step depends on
the one before, so that every wave has one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kernel import limits
from kernel.model import InstanceStatus, StepState, StepStatus, WorkflowInstance
from kernel.protocol.outcomes import CANCELED_CODE

_OPEN: Final = (StepStatus.PENDING, StepStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class RunFinalizer:
    """The instance is at its end; its finalizer (if any) decides the rest."""


@dataclass(frozen=True, slots=True)
class FinishCanceled:
    """An activity canceled the workflow and nothing is in flight."""


@dataclass(frozen=True, slots=True)
class EnterFailing:
    """A step failed for good."""

    step: str


@dataclass(frozen=True, slots=True)
class AllDone:
    """Every step is completed or skipped."""


@dataclass(frozen=True, slots=True)
class ActivateDue:
    """Waits whose time has come turn into pending steps first."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GiveUpLost:
    """A step whose process died too often in a row."""

    step: str


@dataclass(frozen=True, slots=True)
class RunWave:
    """These steps run now, in parallel."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Nothing can run now."""


Action = (
    RunFinalizer
    | FinishCanceled
    | EnterFailing
    | AllDone
    | ActivateDue
    | GiveUpLost
    | RunWave
    | Release
)


def next_action(instance: WorkflowInstance, now: datetime, *, max_recoveries: int) -> Action:
    """Return what the holder does next; no step may be in flight."""
    if instance.status is InstanceStatus.FAILING or instance.finalizer is not None:
        return RunFinalizer()
    settled = settled_end(instance)
    if settled is not None:
        return settled
    due = due_waits(instance, now)
    if due:
        return ActivateDue(due)
    ready = ready_steps(instance, now)
    if not ready:
        return Release()
    lost = [s for s in ready if _gave_up(instance.steps[s], max_recoveries)]
    return GiveUpLost(lost[0]) if lost else RunWave(_wave(instance, ready))


def settled_end(instance: WorkflowInstance) -> FinishCanceled | EnterFailing | AllDone | None:
    """Return the end the steps have reached, by the first that applies, or None."""
    if any(is_canceled(state) for state in instance.steps.values()):
        return FinishCanceled()
    failed = next((n for n, s in instance.steps.items() if s.status is StepStatus.FAILED), None)
    if failed is not None:
        return EnterFailing(failed)
    return AllDone() if all(state.is_done for state in instance.steps.values()) else None


def ready_steps(instance: WorkflowInstance, now: datetime) -> tuple[str, ...]:
    """Return steps that may run now, in plan order."""
    return tuple(
        name
        for name in eligible_steps(instance)
        if (due := instance.steps[name].not_before) is None or due <= now
    )


def eligible_steps(instance: WorkflowInstance) -> tuple[str, ...]:
    """Return unfinished, not waiting steps whose dependencies are all done, in plan order."""
    done = {name for name, state in instance.steps.items() if state.is_done}
    return tuple(
        name
        for name in instance.plan
        if instance.steps[name].status in _OPEN and done.issuperset(instance.steps[name].depends_on)
    )


def due_waits(instance: WorkflowInstance, now: datetime) -> tuple[str, ...]:
    """Return the steps whose wait has a poll time that has come."""
    return tuple(
        wait.step for wait in instance.waits if wait.poll_time is not None and wait.poll_time <= now
    )


def is_canceled(state: StepState) -> bool:
    """Tell whether this step's activity canceled the workflow; its error code is the fact."""
    return (
        state.status is StepStatus.SKIPPED
        and state.error is not None
        and state.error.code == CANCELED_CODE
    )


def next_wake(instance: WorkflowInstance) -> datetime:
    """Return when the instance can go on at the earliest; far in the future if only by signal."""
    times = [
        due for name in sleepers(instance) if (due := instance.steps[name].not_before) is not None
    ]
    return min(times, default=limits.FAR_FUTURE)


def sleepers(instance: WorkflowInstance) -> tuple[str, ...]:
    """Return the steps that decide when a released instance goes on."""
    waiting = (n for n in instance.plan if instance.steps[n].status is StepStatus.WAITING)
    return (*eligible_steps(instance), *waiting)


def _gave_up(state: StepState, max_recoveries: int) -> bool:
    return state.status is StepStatus.RUNNING and state.recoveries >= max_recoveries


def _wave(instance: WorkflowInstance, ready: tuple[str, ...]) -> tuple[str, ...]:
    """Keep suspects of repeated process deaths apart, so that innocents come home first."""
    suspects = [n for n in ready if _is_suspect(instance.steps[n])]
    innocents = tuple(n for n in ready if n not in suspects)
    if innocents or not suspects:
        return innocents
    return (min(suspects, key=lambda name: instance.steps[name].recoveries),)


def _is_suspect(state: StepState) -> bool:
    return state.status is StepStatus.RUNNING and state.recoveries > 0
