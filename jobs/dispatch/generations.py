"""Start a row's work over under a new name: the next generation.

    ready | failed | withdrawn | refused ──new generation──▶ pending (`…:g2`, token + 1)

A finished instance is never reopened, so what is over, or was refused, goes on in a new instance
with a new biz_key. Recovery and the relay end the old generation before they start the new one
(`dispatch_supersedes`), however often they repeat it. The round's number goes on counting, because
an activity of the old generation must not pass for one of the new.

Guarantees: one write; of two racing callers one wins. Leaves to others: who may ask (`services`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q

from jobs.dispatch.clock import db_now
from jobs.dispatch.errors import NotInstalled
from jobs.dispatch.intent import Intent
from jobs.dispatch.relay import publish
from jobs.dispatch.requests import after_commit, checked_input
from jobs.dispatch.states import REQUEST_GRACE, DispatchStatus
from jobs.dispatch.transitions import rows
from kernel import Priority

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin


def new_generation(
    row: DispatchMixin, *, priority: Priority | None = None, where: Q | None = None, **changes: Any
) -> Intent | None:
    """Start the next generation of a row that is over or was refused; the row as read is believed.

    `changes` are further columns to set in the same write, `where` is what else must hold of the
    row. None: it no longer is as it was read, still has a round under way, or its cancel has not
    been carried out yet.

    Raises:
        NotInstalled: the row carries no intent.
        InvalidValue: as `install`.
    On repeat: None, until the new generation is over too.
    """
    token, biz_key = row.dispatch_fencing_token, row.dispatch_biz_key
    if token is None or biz_key is None:
        raise NotInstalled(f"{row._meta.label} {row.pk} has no dispatch intent")
    mapping, model = row.dispatch_mapping, type(row)
    intent = Intent(
        model=model,
        pk=row.pk,
        type=row.dispatch_plan().type,
        biz_key=next_generation_key(row.dispatch_key(), biz_key),
        fencing_token=token + 1,
        input=checked_input(row),
        priority=int(row.dispatch_priority or 0) if priority is None else int(priority),
        supersedes=biz_key,
    )
    believed = rows(model).filter(
        where or Q(),
        pk=row.pk,
        dispatch_biz_key=biz_key,
        dispatch_fencing_token=token,
        **{mapping.column: getattr(row, mapping.column)},
    )
    over = Q(**{f"{mapping.column}__in": sorted(mapping.terminal)}) & ~Q(
        dispatch_status=DispatchStatus.WITHDRAWING
    )
    matched = believed.filter(over | Q(dispatch_status=DispatchStatus.REFUSED)).update(
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


def next_generation_key(first: str, current: str) -> str:
    """Name the generation after `current`, of a row whose first one is named `first`."""
    stem, _, number = current.rpartition(":g")
    if stem == first and number.isascii() and number.isdecimal():
        return f"{first}:g{int(number) + 1}"
    # The first generation; or a name from before the mixin, after which counting starts here.
    return f"{first}:g2"
