"""The first wave begins with the claim, in one write, where nothing has been tried yet (pure).

An instance at its first revision is untouched: every step is pending, it has no waits and no
finalizer, for every change of state raises the revision. What its first begin writes follows from
the definition alone, so it travels with the claim (design 1.5, write budget). Not so where permits
have to be asked for first. A death after that write is one inside the first steps, whether their
code had been entered or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kernel.definition import Definition
from kernel.model import Priority, StepStatus, WorkflowInstance
from kernel.protocol.apply import apply_changes
from kernel.protocol.beginning import begin_changes
from kernel.protocol.expressions import Changes, Expression, Unset
from kernel.protocol.starting import FIRST_REVISION, create_changes

_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FirstWave:
    """The steps that begin with the claim of an untouched instance, and what that writes."""

    steps: tuple[str, ...]
    changes: Changes


def first_wave(definition: Definition) -> FirstWave | None:
    """Return what may begin with the claim; None where permits are to be asked for first."""
    plan = definition.plan
    roots = tuple(name for name in plan.steps if not plan.depends_on[name])
    needs_permits = any(definition.steps[name].traffic_resource is not None for name in roots)
    if needs_permits or definition.workflow_resources is not None:
        return None
    created = create_changes(
        plan, biz_key=plan.type, value=None, fencing_token=1, priority=Priority.ASYNC
    )
    untouched = WorkflowInstance.model_validate(apply_changes({}, created, _ANY_TIME))
    changes: dict[str, Expression] = {}
    for name in roots:
        changes.update(begin_changes(untouched, name))
    # What an untouched instance has not need not be removed.
    written = {path: expr for path, expr in changes.items() if not isinstance(expr, Unset)}
    return FirstWave(roots, written)


def begun_with_claim(instance: WorkflowInstance, wave: FirstWave | None) -> tuple[str, ...]:
    """Return the steps that the claim just taken has begun: none of an instance touched before."""
    if wave is None or not is_first_claim(instance.revision):
        return ()
    states = (instance.steps[name].status for name in wave.steps)
    return wave.steps if all(status is StepStatus.RUNNING for status in states) else ()


def is_first_claim(revision: object) -> bool:
    """Tell by its revision whether nothing was done to an instance before the claim just taken."""
    return revision == FIRST_REVISION + 1
