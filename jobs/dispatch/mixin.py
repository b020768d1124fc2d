"""The abstract model a team adds to its own business model.

Guarantees: an ordinary `save()` never writes the protocol's columns on an existing row, however old
the object in hand is; a save that *means* to change one is refused instead of being dropped in
silence. Leaves to others: the moves themselves (`requests`, `transitions`), bulk writes (`guards`).

A model declares `dispatch_mapping`, `dispatch_plans` and `dispatch_payload`; the system checks
(`checks`) say what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from django.apps import apps
from django.core import checks
from django.db import models

from jobs.dispatch.checks import check_dispatch_model
from jobs.dispatch.errors import GuardedColumn, IncompleteMapping
from jobs.dispatch.fields import ExactJSONField
from jobs.dispatch.guards import PREFIX, DispatchManager, guarded_names, refuse_guarded
from jobs.dispatch.states import DispatchStatus, StatusMapping
from kernel import Plan


class DispatchMixin(models.Model):
    """A business row with its dispatch intent; every `dispatch_*` column belongs to the protocol.

    The columns are NULL on rows that are older than the mixin.
    """

    #: What the model's own statuses mean.
    dispatch_mapping: ClassVar[StatusMapping]
    #: The workflow types this model's rows may run.
    dispatch_plans: ClassVar[Sequence[Plan]] = ()

    dispatch_status = models.CharField(
        max_length=16,
        null=True,
        editable=False,
        choices=[(status.value, status.value) for status in DispatchStatus],
    )
    dispatch_type = models.CharField(max_length=100, null=True, editable=False)
    dispatch_biz_key = models.CharField(max_length=255, null=True, editable=False)
    #: Number of the business round, from 1; raised by one by the write that installs a new round.
    dispatch_fencing_token = models.BigIntegerField(null=True, editable=False)
    dispatch_input = ExactJSONField(null=True, editable=False)
    dispatch_priority = models.SmallIntegerField(null=True, editable=False)
    #: Which recovery dispatcher is registering this row, and until when.
    dispatch_claim_token = models.CharField(max_length=32, null=True, editable=False)
    dispatch_claim_until = models.DateTimeField(null=True, editable=False)
    #: When recovery looks at an undelivered row (again); the claim's end while one is held.
    #: NULL exactly on rows nobody has to act on.
    dispatch_next_at = models.DateTimeField(null=True, editable=False)
    #: Failed attempts to register since the round began; it only stretches the backoff.
    dispatch_attempts = models.PositiveIntegerField(default=0, editable=False)
    dispatch_last_error = models.TextField(default="", editable=False)
    dispatch_supersedes = models.CharField(max_length=255, null=True, editable=False)

    objects = DispatchManager()

    class Meta:
        """Inherit it (`class Meta(DispatchMixin.Meta)`): recovery needs the index."""

        abstract = True
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["dispatch_next_at"],
                # Exactly the undelivered rows have a next turn. Said this way SQLite, too, sees
                # that the dispatcher's query is served by it.
                condition=models.Q(dispatch_next_at__isnull=False),
                name="%(class)s_due",
            )
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["dispatch_biz_key"], name="%(class)s_biz_key_once")
        ]

    # What a model says about itself ------------------------------------------------------------

    def dispatch_plan(self) -> Plan:
        """Choose the plan of this row; override it when the model has several.

        Raises:
            IncompleteMapping: several plans and no choice made.
        """
        if len(self.dispatch_plans) != 1:
            raise IncompleteMapping(f"{self._meta.label} must override dispatch_plan()")
        return self.dispatch_plans[0]

    def dispatch_key(self) -> str:
        """Give the biz_key of the first generation: known before the insert, unique for ever.

        Raises:
            IncompleteMapping: the primary key is made by the database, so it is not known yet.
        """
        if self.pk is None:
            raise IncompleteMapping(
                f"{self._meta.label} gets its primary key from the database: give the field a "
                "default (uuid4), or override dispatch_key() with something known before the insert"
            )
        return f"{self.dispatch_plan().type}:{self.pk}"

    def dispatch_payload(self) -> Mapping[str, Any]:
        """Give the workflow's input: stable identities and decisions frozen at entry; small."""
        raise IncompleteMapping(f"{self._meta.label} must define dispatch_payload()")

    # What a save may write ---------------------------------------------------------------------

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        """Build the object and remember the protocol's columns as they were read."""
        row = super().from_db(*args, **kwargs)
        row._remember_guarded()
        return row

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """Read the row again, the protocol's columns included."""
        super().refresh_from_db(*args, **kwargs)
        self._remember_guarded()

    def save(
        self,
        *,
        force_insert: bool | tuple[models.base.ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Insert the row, or update what does not belong to the protocol.

        Raises:
            GuardedColumn: on an existing row a protocol column was changed in memory, or named.
        On repeat: writes the same columns again; never brings an old round back.
        """
        if update_fields is not None:
            update_fields = list(update_fields)
            refuse_guarded(type(self), update_fields)
        if not self._state.adding and update_fields is None:
            self._refuse_changed()
        super().save(
            force_insert=force_insert,
            force_update=force_update,
            using=using,
            update_fields=update_fields,
        )
        self._remember_guarded()

    def _do_update(
        self,
        base_qs: models.QuerySet[Any],
        using: str | None,
        pk_val: Any,
        values: Collection[tuple[Any, Any, Any]],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # Every UPDATE of save(), save_base() and loaddata passes here, so the columns are taken
        # out where no caller can forget it.
        guarded = set(guarded_names(type(self), (field.name for field, _, _ in values)))
        values = [value for value in values if value[0].name not in guarded]
        return super()._do_update(base_qs, using, pk_val, values, *args, **kwargs)

    def _remember_guarded(self) -> None:
        names = (field.attname for field in self._meta.concrete_fields)
        self._guarded_as_read = {
            name: self.__dict__[name]
            for name in guarded_names(type(self), names)
            if name in self.__dict__
        }

    def _forget_expression(self, name: str) -> None:
        # The database computed the value; reading the attribute fetches it.
        del self.__dict__[name]
        self._remember_guarded()

    def _refuse_changed(self) -> None:
        as_read = getattr(self, "_guarded_as_read", {})
        changed = [name for name, value in as_read.items() if self.__dict__.get(name) != value]
        if changed:
            raise GuardedColumn(self._meta.label, sorted(changed))

    @classmethod
    def check(cls, **kwargs: Any) -> list[checks.CheckMessage]:
        """Add the dispatch checks to the model's own."""
        return [*super().check(**kwargs), *check_dispatch_model(cls)]


def dispatch_models() -> list[type[DispatchMixin]]:
    """List every installed concrete model that carries an intent."""
    return [
        model
        for model in apps.get_models()
        if issubclass(model, DispatchMixin) and not model._meta.proxy
    ]


def own_columns(model: type[models.Model]) -> list[str]:
    """List the protocol's columns of a model, for pages that show them read-only."""
    return [field.name for field in model._meta.concrete_fields if field.name.startswith(PREFIX)]
