"""Keep the protocol's columns out of every ordinary write, and undelivered rows out of deletes.

Guarantees: `update`, `bulk_update` and upserts that name a guarded column raise `GuardedColumn`; a
row that is neither over nor withdrawn is not deleted (`ProtectedError`), whether through the
object, a queryset, the admin or a cascade. Leaves to others: `save()` (`mixin`), and raw SQL, which
no guard in Python can stop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models.signals import class_prepared, pre_delete

from jobs.dispatch.errors import GuardedColumn
from jobs.dispatch.states import UNDELIVERED, DispatchStatus

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

_Row = TypeVar("_Row", bound=models.Model)
PREFIX = "dispatch_"


def guarded_names(model: type[models.Model], names: Iterable[str]) -> list[str]:
    """Pick the names that only the protocol may write on an existing row of `model`."""
    mapping = getattr(model, "dispatch_mapping", None)
    business = mapping.guarded if mapping is not None else frozenset()
    return sorted(name for name in names if name.startswith(PREFIX) or name in business)


def refuse_guarded(model: type[models.Model], names: Iterable[str]) -> None:
    """Raise GuardedColumn if one of the names belongs to the protocol."""
    if found := guarded_names(model, names):
        raise GuardedColumn(model._meta.label, found)


class DispatchQuerySet(models.QuerySet[_Row]):
    """A queryset whose bulk writes leave the protocol's columns alone."""

    def update(self, **changes: Any) -> int:
        """Update as usual. Raises: GuardedColumn, before any row is touched."""
        refuse_guarded(self.model, changes)
        return super().update(**changes)

    def bulk_update(
        self, objs: Iterable[_Row], fields: Iterable[str], batch_size: int | None = None
    ) -> int:
        """Update as usual. Raises: GuardedColumn, before any row is touched."""
        names = list(fields)
        refuse_guarded(self.model, names)
        return super().bulk_update(objs, names, batch_size)

    def bulk_create(
        self,
        objs: Iterable[_Row],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[_Row]:
        """Insert as usual; an upsert may not name guarded columns. Raises: GuardedColumn."""
        refuse_guarded(self.model, update_fields or ())
        return super().bulk_create(
            objs, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields
        )


DispatchManager = models.Manager.from_queryset(DispatchQuerySet)


def protect_live_row(
    sender: type[DispatchMixin], instance: DispatchMixin, using: str, **_: object
) -> None:
    """Refuse to delete a row whose work is not over.

    The row is read again, locked where the database can, because the object in hand may be old.
    """
    mapping = sender.dispatch_mapping
    row = (
        sender._base_manager.using(using)
        .select_for_update()
        .filter(pk=instance.pk)
        .values_list("dispatch_status", mapping.column)
        .first()
    )
    if row is None or row[0] in {None, DispatchStatus.WITHDRAWN}:
        return
    dispatch_status, status = row
    if dispatch_status not in UNDELIVERED and status in mapping.terminal:
        return
    raise models.ProtectedError(
        f"{sender._meta.label} {instance.pk} is {status!r}, its dispatch is {dispatch_status!r}: "
        "cancel it first, and delete it once its dispatch is withdrawn",
        {instance},
    )


def _guard_deletes(sender: type[models.Model], **_: object) -> None:
    """Connect the delete guard to each model with an intent, and to no other model."""
    if hasattr(sender, "dispatch_mapping") and not sender._meta.abstract:
        pre_delete.connect(
            protect_live_row, sender=sender, dispatch_uid=f"dispatch:{sender._meta.label}"
        )


class_prepared.connect(_guard_deletes)
