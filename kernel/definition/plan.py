"""The publisher's side of a workflow: a plan can be imported anywhere, it holds no code.

Guarantees that a plan which exists can be run: names, dependencies and cycles are checked when it
is written. Leaves to others: the code behind its steps (`kernel.definition.definition`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pydantic
from pydantic_core import PydanticSerializationError

from kernel import limits
from kernel.definition import names
from kernel.definition.fingerprint import fingerprint
from kernel.errors import DefinitionError, InvalidValue


class Plan:
    """Type, queue, step names and dependencies of a workflow (design 1.7, 9).

    Without `depends_on` the steps form a line, each depending on the one before. With it, every
    step must be named: `{"left": [], "right": [], "join": ["left", "right"]}`. All ready steps form
    a wave; a wave is closed: its steps all come home before a new one begins, so steps that must
    not wait for each other belong to different workflows.

    Raises:
        DefinitionError: bad or duplicate name, unknown dependency, cycle, no steps.
    """

    __slots__ = ("depends_on", "fingerprint", "input_model", "queue", "steps", "type")

    def __init__(
        self,
        type: str,  # noqa: A002 - the field's own word, used positionally
        *,
        queue: str,
        steps: Sequence[str],
        input: type[pydantic.BaseModel] | None = None,  # noqa: A002 - the public face says input
        depends_on: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.type = names.check_type(type)
        self.queue = names.check_queue(queue)
        self.steps = _check_steps(type, steps)
        self.input_model = input
        self.depends_on = _check_dependencies(type, self.steps, depends_on)
        self.fingerprint = fingerprint(self.type, self.steps, self.depends_on)

    def __repr__(self) -> str:
        return f"Plan({self.type!r}, queue={self.queue!r}, steps={list(self.steps)!r})"

    def dump_input(self, value: object) -> object:
        """Return `value` as plain JSON, validated by the plan's input model where it names one.

        Raises:
            InvalidValue: the model refuses it; the message carries the field and the reason.
        """
        if self.input_model is None:
            return self._as_json(value) if isinstance(value, pydantic.BaseModel) else value
        try:
            model = (
                value
                if isinstance(value, self.input_model)
                else self.input_model.model_validate(value)
            )
        except pydantic.ValidationError as exc:
            first = exc.errors()[0]
            path = "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"])
            raise InvalidValue(first["msg"], path=path, what=f"input of {self.type}") from exc
        return self._as_json(model)

    def _as_json(self, model: pydantic.BaseModel) -> object:
        try:
            return model.model_dump(mode="json")
        except PydanticSerializationError as exc:
            reason = f"cannot be written as JSON: {exc}"
            raise InvalidValue(reason, what=f"input of {self.type}") from exc

    def load_input(self, value: object) -> object:
        """Return what an activity sees as `ctx.input`: the plan's model, else the plain value."""
        return value if self.input_model is None else self.input_model.model_validate(value)


def _check_steps(plan_type: str, steps: Sequence[str]) -> tuple[str, ...]:
    if isinstance(steps, str) or not steps:
        raise DefinitionError(f"plan {plan_type!r}: give steps as a non-empty list of names")
    if len(steps) > limits.PLAN_STEPS:
        raise DefinitionError(f"plan {plan_type!r}: at most {limits.PLAN_STEPS} steps")
    checked = tuple(names.check_step_name(name) for name in steps)
    for name in checked:
        if checked.count(name) > 1:
            raise DefinitionError(f"plan {plan_type!r}: step {name!r} is named twice; rename one")
    return checked


def _check_dependencies(
    plan_type: str, steps: tuple[str, ...], depends_on: Mapping[str, Sequence[str]] | None
) -> dict[str, tuple[str, ...]]:
    if depends_on is None:
        return {name: steps[i - 1 : i] if i else () for i, name in enumerate(steps)}
    unknown = sorted(set(depends_on) - set(steps))
    missing = [name for name in steps if name not in depends_on]
    if unknown or missing:
        raise DefinitionError(
            f"plan {plan_type!r}: depends_on must name every step once"
            f" (missing: {missing}, not a step: {unknown})"
        )
    graph: dict[str, tuple[str, ...]] = {}
    for name in steps:
        wanted = depends_on[name]
        if isinstance(wanted, str):
            raise DefinitionError(f"plan {plan_type!r}: write depends_on[{name!r}] as a list")
        for dependency in wanted:
            if dependency not in steps:
                raise DefinitionError(
                    f"plan {plan_type!r}: {name!r} depends on {dependency!r}, which is no step"
                )
        graph[name] = tuple(dict.fromkeys(wanted))
    _refuse_cycle(plan_type, graph)
    return graph


def _refuse_cycle(plan_type: str, graph: dict[str, tuple[str, ...]]) -> None:
    done: set[str] = set()
    while len(done) < len(graph):
        free = [n for n, deps in graph.items() if n not in done and done.issuperset(deps)]
        if not free:
            circle = sorted(set(graph) - done)
            raise DefinitionError(
                f"plan {plan_type!r}: steps {circle} depend on each other in a circle"
            )
        done.update(free)
