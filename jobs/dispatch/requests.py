"""What a request does to an intent: install it, start a new round, cancel.

Guarantees: each is one write of the business row, intent included; what follows outside the
database happens after the commit of the surrounding transaction (at once where there is none) and
may fail without harm, because recovery finds the row. Leaves to others: who may ask (`services`),
and starting over what is over (`generations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import router, transaction
from django.db.models import Q

from jobs.dispatch.clock import db_now
from jobs.dispatch.errors import IncompleteMapping, NotInstalled
from jobs.dispatch.intent import COLUMNS, Intent, read_identity
from jobs.dispatch.relay import publish, withdraw
from jobs.dispatch.states import REQUEST_GRACE, DispatchStatus
from jobs.dispatch.transitions import rows
from kernel import Priority, check_json
from kernel.limits import INPUT_BYTES

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

_Row = TypeVar("_Row", bound="DispatchMixin")


class CancelOutcome(StrEnum):
    """What a cancel found."""

    CANCELED = "canceled"
    ALREADY_CANCELED = "already_canceled"
    #: Over in another way: ready or failed.
    OVER = "over"
    GONE = "gone"


def install(row: DispatchMixin, *, priority: Priority = Priority.ASYNC) -> Intent:
    """Insert a new business row together with the intent of its first round.

    Raises:
        IncompleteMapping: the model does not say enough.
        InvalidValue: the payload holds what the kernel could not keep (ValueTooLarge: too much).
        IntegrityError: the primary key or biz_key exists; nothing was written.
    """
    if not row._state.adding:
        raise IncompleteMapping(f"{row._meta.label} {row.pk} exists; a new round is `new_round`")
    mapping = row.dispatch_mapping
    intent = Intent(
        model=type(row),
        pk=row.pk,
        type=row.dispatch_plan().type,
        biz_key=row.dispatch_key(),
        fencing_token=1,
        input=checked_input(row),
        priority=int(priority),
    )
    for name, value in intent.columns().items():
        setattr(row, name, value)
    setattr(row, mapping.column, mapping.initial)
    row.dispatch_status = DispatchStatus.PENDING
    row.dispatch_next_at = db_now(REQUEST_GRACE)
    row.save(force_insert=True)
    row._forget_expression("dispatch_next_at")
    if intent.pk is None:
        intent = replace(intent, pk=row.pk)
    after_commit(intent, publish)
    return intent


def new_round(
    row: _Row, *, priority: Priority | None = None, where: Q | None = None, **changes: Any
) -> Intent | None:
    """Start the next round of a failed row: the object as read is the belief, one write the change.

    `changes` are further columns to set in the same write, `where` is what else must hold of the
    row. None: the row is no longer failed in that round; of two racing callers exactly one gets an
    intent.

    Raises:
        NotInstalled: the row carries no intent.
        InvalidValue: as `install`.
    On repeat: None, until the new round has failed too.
    """
    token, biz_key = row.dispatch_fencing_token, row.dispatch_biz_key
    if token is None or biz_key is None:
        raise NotInstalled(f"{row._meta.label} {row.pk} has no dispatch intent")
    mapping, model = row.dispatch_mapping, type(row)
    intent = Intent(
        model=model,
        pk=row.pk,
        type=row.dispatch_plan().type,
        biz_key=biz_key,
        fencing_token=token + 1,
        input=checked_input(row),
        priority=int(row.dispatch_priority or 0) if priority is None else int(priority),
    )
    failed = rows(model).filter(
        where or Q(),
        pk=row.pk,
        dispatch_biz_key=biz_key,
        dispatch_fencing_token=token,
        **{mapping.column: mapping.failed},
    )
    matched = failed.update(
        **mapping.cleared,
        **changes,
        **{mapping.column: mapping.initial},
        **intent.columns(),
        dispatch_status=DispatchStatus.PENDING,
        dispatch_next_at=db_now(REQUEST_GRACE),
    )
    if not matched:
        return None
    after_commit(intent, publish)
    return intent


def cancel(model: type[DispatchMixin], pk: Any, **changes: Any) -> CancelOutcome:
    """End the business object and ask for its instance's end, in one write, from any open state.

    Raises:
        NotInstalled: the row carries no intent.
    On repeat: `already_canceled`; an unfinished withdrawal is left to recovery.
    """
    mapping = model.dispatch_mapping
    open_row = rows(model).filter(pk=pk, dispatch_status__isnull=False)
    matched = open_row.exclude(**{f"{mapping.column}__in": sorted(mapping.terminal)}).update(
        **changes,
        **{mapping.column: mapping.canceled},
        dispatch_status=DispatchStatus.WITHDRAWING,
        dispatch_next_at=db_now(REQUEST_GRACE),
        # Whoever was registering loses the claim here, finds the cancel and ends what it started.
        dispatch_claim_token=None,
        dispatch_claim_until=None,
        dispatch_attempts=0,
    )
    row = rows(model).filter(pk=pk).values(*COLUMNS, "dispatch_status", mapping.column).first()
    if row is None:
        return CancelOutcome.GONE
    if row["dispatch_status"] is None:
        raise NotInstalled(f"{model._meta.label} {pk} has no dispatch intent")
    if matched:
        after_commit(read_identity(model, row), withdraw)
        return CancelOutcome.CANCELED
    if row[mapping.column] == mapping.canceled:
        return CancelOutcome.ALREADY_CANCELED
    return CancelOutcome.OVER


def checked_input(row: DispatchMixin) -> dict[str, Any]:
    """Give the row's payload after the kernel's own check. Raises: InvalidValue."""
    return check_payload(row, row.dispatch_payload())


def check_payload(row: DispatchMixin, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse now what would wait for ever. Raises: InvalidValue (ValueTooLarge: too much)."""
    kept = dict(payload)
    check_json(kept, limit_bytes=INPUT_BYTES, what=f"payload of {row._meta.label}")
    return kept


def after_commit(intent: Intent, action: Callable[[Intent], object]) -> None:
    """Let `action` happen once the surrounding transaction is committed; at once without one."""
    # robust: a failure of ours must not keep the host's other callbacks from running.
    transaction.on_commit(
        partial(action, intent), using=router.db_for_write(intent.model), robust=True
    )
