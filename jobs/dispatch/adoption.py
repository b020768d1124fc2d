"""Give rows that are older than the mixin their intents.

    NULL ──over──▶ withdrawn      nothing of it runs or will; a retry or a new generation may follow
         ──run───▶ pending        recovery registers it as it would a new row
         ──leave─▶ NULL           as before: not part of the protocol

What cannot be known from a row is decided by a function of the team's: whether an open row still
has to run, and under which name, number and input. Without one only rows that are over are adopted,
because starting what an older system may still be doing would do it twice.

Guarantees: each row is one conditional update that names the status it was read with, so a run may
be repeated, broken off, or made twice at once. Leaves to others: asking (`manage.py adopt`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, IntegrityError, router, transaction

from jobs.dispatch.clock import db_now
from jobs.dispatch.errors import DispatchError
from jobs.dispatch.intent import Intent
from jobs.dispatch.requests import check_payload
from jobs.dispatch.states import DispatchStatus
from jobs.dispatch.transitions import rows
from kernel import KernelError, Priority

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

#: Rows read at a time.
BATCH_ROWS = 200


class Decision(StrEnum):
    """What to do with a row."""

    RUN = "run"
    OVER = "over"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The team's answer about one row; what is None is asked of the model."""

    decision: Decision
    #: Name of the row's generation; None is `dispatch_key()`.
    biz_key: str | None = None
    #: Rounds the row has had, this one included.
    fencing_token: int = 1
    #: The workflow's input; None is `dispatch_payload()`.
    input: Mapping[str, Any] | None = None
    #: An old backlog goes behind everything that clients wait for.
    priority: Priority = Priority.RECOVERY
    #: Called in the same transaction once the row is adopted, for a ledger of the team's.
    and_then: Callable[[Intent], object] | None = None


#: Decides about one row, which it must not change.
Decide = Callable[[Any], Adoption]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What became, or on a dry run would become, of one row."""

    pk: Any
    #: The row's own status.
    status: str
    #: `run`, `over`, `leave`, `moved` (the row changed meanwhile) or `problem`.
    outcome: str
    detail: str = ""


def only_what_is_over(row: DispatchMixin) -> Adoption:
    """Adopt rows that are over and leave the others: the decision without a function."""
    mapping = row.dispatch_mapping
    over = getattr(row, mapping.column) in mapping.terminal
    return Adoption(decision=Decision.OVER if over else Decision.LEAVE)


def adopt(
    model: type[DispatchMixin],
    decide: Decide = only_what_is_over,
    *,
    apply: bool = False,
    limit: int | None = None,
    batch: int = BATCH_ROWS,
) -> Iterator[Adopted]:
    """Go through the rows without an intent, in the order of their keys; write only with `apply`.

    `limit` is the number of rows looked at. An error about one row is its outcome, not the end.
    On repeat: rows that were left, or had a problem, are looked at again, the others are not.
    """
    last: Any = None
    left = limit
    while left is None or left > 0:
        bare = rows(model).filter(dispatch_status__isnull=True, dispatch_biz_key__isnull=True)
        if last is not None:
            bare = bare.filter(pk__gt=last)
        found = list(bare.order_by("pk")[: batch if left is None else min(batch, left)])
        for row in found:
            yield _one(row, decide, apply=apply)
        if not found:
            return
        last = found[-1].pk
        left = None if left is None else left - len(found)


def _one(row: DispatchMixin, decide: Decide, *, apply: bool) -> Adopted:
    status = str(getattr(row, row.dispatch_mapping.column))
    try:
        adoption = decide(row)
        if adoption.decision is Decision.LEAVE:
            return Adopted(pk=row.pk, status=status, outcome=Decision.LEAVE)
        intent = _intent(row, adoption)
        if apply and not _write(row, adoption, intent):
            return Adopted(pk=row.pk, status=status, outcome="moved")
    except IntegrityError:
        detail = "another row has this biz_key already"
        return Adopted(pk=row.pk, status=status, outcome="problem", detail=detail)
    except DatabaseError:
        # The database's own troubles are not this row's.
        raise
    except Exception as exc:  # noqa: BLE001 - the team's function: whatever it is, tell and go on
        detail = f"{type(exc).__name__}: {exc}"
        return Adopted(pk=row.pk, status=status, outcome="problem", detail=detail)
    return Adopted(
        pk=row.pk,
        status=status,
        outcome=adoption.decision,
        detail=f"{intent.biz_key}, round {intent.fencing_token}",
    )


def _intent(row: DispatchMixin, adoption: Adoption) -> Intent:
    """Build the intent a row is to carry. Raises: DispatchError, KernelError."""
    mapping = row.dispatch_mapping
    over = getattr(row, mapping.column) in mapping.terminal
    if adoption.decision is Decision.RUN and over:
        raise DispatchError("a row that is over is not run; adopt it as over, then retry it")
    if adoption.fencing_token < 1:
        raise DispatchError(f"a round's number is 1 or more, not {adoption.fencing_token}")
    payload = row.dispatch_payload() if adoption.input is None else adoption.input
    try:
        checked = check_payload(row, payload)
    except KernelError:
        if adoption.decision is Decision.RUN:
            raise
        # Nothing is started from it; a later round builds and checks its own.
        checked = {}
    return Intent(
        model=type(row),
        pk=row.pk,
        type=row.dispatch_plan().type,
        biz_key=adoption.biz_key or row.dispatch_key(),
        fencing_token=adoption.fencing_token,
        input=checked,
        priority=int(adoption.priority),
    )


def _write(row: DispatchMixin, adoption: Adoption, intent: Intent) -> bool:
    mapping, model = row.dispatch_mapping, type(row)
    runs = adoption.decision is Decision.RUN
    as_read = rows(model).filter(
        pk=row.pk,
        dispatch_status__isnull=True,
        dispatch_biz_key__isnull=True,
        **{mapping.column: getattr(row, mapping.column)},
    )
    with transaction.atomic(using=router.db_for_write(model)):
        matched = as_read.update(
            **intent.columns(),
            dispatch_status=DispatchStatus.PENDING if runs else DispatchStatus.WITHDRAWN,
            dispatch_next_at=db_now() if runs else None,
        )
        if matched and adoption.and_then is not None:
            adoption.and_then(intent)
    return bool(matched)
