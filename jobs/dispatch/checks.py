"""System checks: a model that cannot keep the dispatch protocol is refused at start-up.

```
jobs.E001  multi-table inheritance: an update of such a child is two queries, so no guard holds
jobs.E002  the status mapping is missing or contradicts the model
jobs.E003  no plan, or no dispatch_payload
jobs.E004  the partial index is missing (Meta not inherited)
jobs.E005  a manager whose querysets do not guard the protocol's columns
```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.core.exceptions import FieldDoesNotExist

from jobs.dispatch.guards import DispatchQuerySet
from jobs.dispatch.states import StatusMapping

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin


def check_dispatch_model(model: type[DispatchMixin]) -> list[checks.CheckMessage]:
    """Return what keeps `model` from carrying an intent; empty for a sound or abstract model."""
    if model._meta.abstract or model._meta.proxy:
        return []
    found = [
        *_inheritance(model),
        *_mapping(model),
        *_plans(model),
        *_index(model),
        *_managers(model),
    ]
    return [checks.Error(text, hint=hint, obj=model, id=id_) for id_, text, hint in found]


_Found = Iterator[tuple[str, str, str]]


def _inheritance(model: type[DispatchMixin]) -> _Found:
    if model._meta.parents:
        names = ", ".join(parent._meta.label for parent in model._meta.parents)
        yield (
            "jobs.E001",
            f"A model with a dispatch intent may not inherit from a concrete model ({names}).",
            "Make the parent abstract, or link the two models by a OneToOneField.",
        )


def _mapping(model: type[DispatchMixin]) -> _Found:
    mapping = getattr(model, "dispatch_mapping", None)
    if not isinstance(mapping, StatusMapping):
        yield (
            "jobs.E002",
            "The model does not say what its statuses mean.",
            "Set dispatch_mapping = StatusMapping(initial=…, failed=…, canceled=…, terminal=…).",
        )
        return
    for text in _contradictions(model, mapping):
        yield "jobs.E002", text, "Correct dispatch_mapping or the model."


def _contradictions(model: type[DispatchMixin], mapping: StatusMapping) -> Iterator[str]:
    for name in sorted(mapping.guarded):
        try:
            model._meta.get_field(name)
        except FieldDoesNotExist:
            yield f"dispatch_mapping names a column {name!r} the model does not have."
    for what in ("failed", "canceled"):
        if getattr(mapping, what) not in mapping.terminal:
            yield f"dispatch_mapping.terminal lacks the {what} status {getattr(mapping, what)!r}."
    if mapping.initial in mapping.terminal:
        yield f"dispatch_mapping.initial {mapping.initial!r} is among the terminal statuses."
    if mapping.failed == mapping.canceled:
        yield "dispatch_mapping: failed and canceled must be different statuses."
    known = _choices(model, mapping.column)
    named = {mapping.initial, *mapping.terminal}
    if known and (unknown := sorted(named - known)):
        yield f"dispatch_mapping names statuses the column's choices lack: {', '.join(unknown)}."


def _choices(model: type[DispatchMixin], field_name: str) -> set[Any]:
    try:
        field: Any = model._meta.get_field(field_name)
    except FieldDoesNotExist:
        return set()
    return {value for value, _ in field.flatchoices}


def _plans(model: type[DispatchMixin]) -> _Found:
    if not model.dispatch_plans:
        yield "jobs.E003", "The model names no workflow.", "Set dispatch_plans = (MY_PLAN,)."
    payload = model.dispatch_payload
    if payload.__module__ == "jobs.dispatch.mixin":
        yield (
            "jobs.E003",
            "The model does not say what its workflow gets as input.",
            "Define dispatch_payload(self) returning a small JSON object.",
        )


def _index(model: type[DispatchMixin]) -> _Found:
    due = [ix for ix in model._meta.indexes if ix.fields == ["dispatch_next_at"] and ix.condition]
    if not due:
        yield (
            "jobs.E004",
            "The partial index on undelivered rows is missing.",
            "Write class Meta(DispatchMixin.Meta) and add to its indexes, do not replace them.",
        )


def _managers(model: type[DispatchMixin]) -> _Found:
    for manager in model._meta.managers:
        if not issubclass(manager._queryset_class, DispatchQuerySet):  # type: ignore[attr-defined]
            yield (
                "jobs.E005",
                f"The manager {manager.name!r} does not guard the dispatch columns.",
                "Build it from DispatchQuerySet (jobs.dispatch.guards).",
            )
