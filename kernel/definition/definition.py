"""The worker's side of a workflow: a plan with its activities and finalizers (design 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kernel.definition.plan import Plan
from kernel.definition.resources import resources_for
from kernel.definition.step import Step
from kernel.errors import DefinitionError

if TYPE_CHECKING:
    from kernel.context import ActivityContext, FinalizerContext

_T = TypeVar("_T")
Finalizer = Callable[["FinalizerContext"], Any]


class Definition:
    """A plan, a `Step` for every step name, and the reliable end of the workflow.

    `success_finalizer` runs before `completed`, `failure_finalizer` between `failing` and `failed`;
    both take a FinalizerContext, must be repeatable, and are retried for ever.
    `prepare_context(ctx)` runs once per claim, is deterministic and does no I/O.
    `workflow_resources(input)` names the resources held while one claim runs steps, e.g. a share of
    a tenant (design 2.5).
    `ports` is handed to activities as `ctx.ports`; without it the kernel's own are.

    Raises:
        DefinitionError: an unknown step, a missing one, or something that cannot be called.
    """

    __slots__ = (
        "failure_finalizer",
        "plan",
        "ports",
        "prepare_context",
        "steps",
        "success_finalizer",
        "workflow_resources",
    )

    def __init__(
        self,
        plan: Plan,
        *,
        steps: Mapping[str, Step],
        success_finalizer: Finalizer | None = None,
        failure_finalizer: Finalizer | None = None,
        prepare_context: Callable[[ActivityContext], object] | None = None,
        workflow_resources: Callable[[Any], str | Sequence[str] | None] | None = None,
        ports: object = None,
    ) -> None:
        self.plan = plan
        self.steps = _check_steps(plan, steps)
        self.success_finalizer = _check_callable(plan, "success_finalizer", success_finalizer)
        self.failure_finalizer = _check_callable(plan, "failure_finalizer", failure_finalizer)
        self.prepare_context = _check_callable(plan, "prepare_context", prepare_context)
        self.workflow_resources = _check_callable(plan, "workflow_resources", workflow_resources)
        self.ports = ports

    def named_for_workflow(self, value: Any) -> tuple[str, ...]:
        """Return the resources one claim needs, sorted; `value` is what activities get as input.

        Raises:
            InvalidValue: the callable named something that is no resource.
        """
        return resources_for(self.workflow_resources, value)

    def __repr__(self) -> str:
        return f"Definition({self.plan.type!r}, steps={list(self.steps)!r})"


def _check_steps(plan: Plan, steps: Mapping[str, Step]) -> dict[str, Step]:
    unknown = sorted(set(steps) - set(plan.steps))
    missing = [name for name in plan.steps if name not in steps]
    if unknown:
        raise DefinitionError(
            f"{plan.type!r} has no step {unknown}; its plan names {list(plan.steps)}"
        )
    if missing:
        raise DefinitionError(
            f"{plan.type!r} lacks an activity for {missing}; add Step(...) for each"
        )
    for name, step in steps.items():
        if not isinstance(step, Step):
            raise DefinitionError(f"{plan.type!r}: wrap the activity of {name!r} in Step(...)")
    return {name: steps[name] for name in plan.steps}


def _check_callable(plan: Plan, what: str, value: _T) -> _T:
    if value is not None and not callable(value):
        raise DefinitionError(f"{plan.type!r}: {what} must be callable, not {value!r}")
    return value
