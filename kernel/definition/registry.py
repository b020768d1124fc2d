"""What this process knows: plans it may publish, definitions it may run (design 1.7).

Publishers register plans only and never import activity code. Registering the same thing again
is harmless; another fingerprint under the same type is refused, because one process cannot read
one type in two ways.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernel.definition.definition import Definition
from kernel.definition.plan import Plan
from kernel.errors import DefinitionError, UnknownWorkflow


class Registry:
    """Plans and definitions by workflow type."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}
        self._definitions: dict[str, Definition] = {}

    def register_plan(self, plan: Plan) -> None:
        """Allow this process to publish `plan`. On repeat: nothing, if it is the same plan.

        Raises:
            DefinitionError: the type is already registered with other steps or another queue.
        """
        known = self._plans.get(plan.type)
        if known is not None and (known.fingerprint, known.queue) != (plan.fingerprint, plan.queue):
            raise DefinitionError(
                f"{plan.type!r} is registered with steps {list(known.steps)} on {known.queue!r} and"
                f" again with {list(plan.steps)} on {plan.queue!r}; keep one, or use another type"
            )
        self._plans[plan.type] = plan

    def register(self, definition: Definition) -> None:
        """Allow this process to publish and to run `definition`. On repeat: the later one counts.

        Raises:
            DefinitionError: as register_plan.
        """
        self.register_plan(definition.plan)
        self._definitions[definition.plan.type] = definition

    def plan(self, plan_type: str) -> Plan:
        """Return the plan of a type, or raise UnknownWorkflow naming the known ones."""
        try:
            return self._plans[plan_type]
        except KeyError:
            raise UnknownWorkflow(
                f"no plan {plan_type!r} is registered here; known: {sorted(self._plans)}"
            ) from None

    def definition(self, plan_type: str) -> Definition | None:
        """Return the definition this process would run a type with, if any."""
        return self._definitions.get(plan_type)

    def plans(self) -> Iterable[Plan]:
        """Return every registered plan."""
        return self._plans.values()

    def definitions(self) -> Iterable[Definition]:
        """Return every registered definition."""
        return self._definitions.values()

    def queues(self) -> list[str]:
        """Return the queues of all registered plans, sorted."""
        return sorted({plan.queue for plan in self._plans.values()})
