"""The moves of a dispatch intent after it was written: one conditional UPDATE each.

Guarantees: every filter names the round, the state the mover believes in, and the dispatch claim
where one is held; True means "this call moved the row". Leaves to others: writing an intent
(`requests`), and what a miss means (`relay`, `recovery`).
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import models, router
from django.db.models import F, Q

from jobs.dispatch.clock import db_now
from jobs.dispatch.intent import COLUMNS, Intent, this_round
from jobs.dispatch.states import CLAIM_LEASE, LAST_ERROR_CHARACTERS, UNDELIVERED, DispatchStatus

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

_SETTLED: dict[str, Any] = {
    "dispatch_claim_token": None,
    "dispatch_claim_until": None,
    "dispatch_next_at": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A row under a dispatch claim, as it was read right after it was taken."""

    model: type[DispatchMixin]
    claim_token: str
    #: The row's intent columns (`intent.COLUMNS`), not yet checked against each other.
    row: dict[str, Any]
    #: True when the object was canceled, so its instance is to be superseded, not started.
    withdrawing: bool
    #: Failed attempts before this one.
    attempts: int


def rows(model: type[DispatchMixin]) -> models.QuerySet[Any]:
    """Give the unguarded rows of a model on the database it is written to."""
    return model._base_manager.using(router.db_for_write(model))


def confirm(intent: Intent) -> bool:
    """Pending → dispatched, by the request path. On repeat: moves nothing."""
    pending = this_round(rows(intent.model), intent).filter(dispatch_status=DispatchStatus.PENDING)
    return _moved(
        pending, dispatch_status=DispatchStatus.DISPATCHED, dispatch_last_error="", **_SETTLED
    )


def withdrawn(intent: Intent) -> bool:
    """Withdrawing → withdrawn, once nothing of the generation runs. On repeat: moves nothing."""
    row = this_round(rows(intent.model), intent).filter(dispatch_status=DispatchStatus.WITHDRAWING)
    return _moved(row, dispatch_status=DispatchStatus.WITHDRAWN, dispatch_last_error="", **_SETTLED)


def due_filter() -> Q:
    """Rows recovery may take now; `dispatch_next_at` alone decides, so the partial index serves."""
    return Q(
        dispatch_status__in=UNDELIVERED,
        dispatch_next_at__lte=db_now(),
    )


def take(model: type[DispatchMixin], pk: Any) -> Taken | None:
    """Take the dispatch claim of a due row: pending or an expired processing → processing.

    A withdrawing row stays withdrawing and carries the claim. None: somebody else has it, or it
    has moved on.
    """
    claim_token = secrets.token_hex(16)
    lease = {"dispatch_claim_token": claim_token} | _until(CLAIM_LEASE)
    due = rows(model).filter(due_filter(), pk=pk)
    withdrawing = Q(dispatch_status=DispatchStatus.WITHDRAWING)
    free = Q(dispatch_claim_until__isnull=True) | Q(dispatch_claim_until__lte=db_now())
    startable = Q(dispatch_status=DispatchStatus.PENDING) | (
        Q(dispatch_status=DispatchStatus.PROCESSING) & free
    )
    if not (
        _moved(due.filter(startable), dispatch_status=DispatchStatus.PROCESSING, **lease)
        or _moved(due.filter(withdrawing & free), **lease)
    ):
        return None
    held = rows(model).filter(pk=pk, dispatch_claim_token=claim_token)
    row = held.values(*COLUMNS, "dispatch_status", "dispatch_attempts").first()
    if row is None:
        return None
    return Taken(
        model=model,
        claim_token=claim_token,
        row=row,
        withdrawing=row["dispatch_status"] == DispatchStatus.WITHDRAWING,
        attempts=row["dispatch_attempts"],
    )


def renew(taken: Taken) -> bool:
    """Prolong the claim. False: it was lost or the row moved on; stop at once."""
    return _moved(_held(taken), **_until(CLAIM_LEASE))


def confirm_taken(taken: Taken) -> bool:
    """Processing → dispatched, by the claim's holder."""
    return _moved(
        _held(taken).filter(dispatch_status=DispatchStatus.PROCESSING),
        dispatch_status=DispatchStatus.DISPATCHED,
        dispatch_last_error="",
        **_SETTLED,
    )


def confirm_page(page: Sequence[Taken]) -> set[Any]:
    """Processing → dispatched for rows of one model, each by its claim; return their keys.

    One update for those of one round number, which are nearly always all of them.
    """
    confirmed: set[Any] = set()
    by_round: dict[int, list[Taken]] = defaultdict(list)
    for taken in page:
        by_round[taken.row["dispatch_fencing_token"]].append(taken)
    for number, some in by_round.items():
        held = rows(some[0].model).filter(
            pk__in=[taken.row["pk"] for taken in some],
            dispatch_claim_token__in=[taken.claim_token for taken in some],
            dispatch_fencing_token=number,
            dispatch_status=DispatchStatus.PROCESSING,
        )
        changes = {"dispatch_status": DispatchStatus.DISPATCHED, "dispatch_last_error": ""}
        if held.update(**changes, **_SETTLED) == len(some):
            confirmed |= {taken.row["pk"] for taken in some}
        else:
            confirmed |= {taken.row["pk"] for taken in some if _is_dispatched(taken)}
    return confirmed


def _is_dispatched(taken: Taken) -> bool:
    row = rows(taken.model).filter(
        pk=taken.row["pk"],
        dispatch_biz_key=taken.row["dispatch_biz_key"],
        dispatch_fencing_token=taken.row["dispatch_fencing_token"],
    )
    return row.filter(dispatch_status=DispatchStatus.DISPATCHED).exists()


def withdrawn_taken(taken: Taken) -> bool:
    """Withdrawing → withdrawn, by the claim's holder."""
    return _moved(
        _held(taken).filter(dispatch_status=DispatchStatus.WITHDRAWING),
        dispatch_status=DispatchStatus.WITHDRAWN,
        dispatch_last_error="",
        **_SETTLED,
    )


def refuse(taken: Taken, reason: str) -> bool:
    """Processing → refused: this round can never run. A row that has moved on is left alone."""
    return _moved(
        _held(taken).filter(dispatch_status=DispatchStatus.PROCESSING),
        dispatch_status=DispatchStatus.REFUSED,
        dispatch_last_error=_text(reason),
        **_SETTLED,
    )


def give_back(taken: Taken, *, delay: timedelta, reason: str, failed: bool) -> bool:
    """Release the claim with the same round: processing → pending, withdrawing stays.

    `failed` counts an attempt, which stretches the next delay; there is no last attempt.
    """
    release: dict[str, Any] = {
        "dispatch_claim_token": None,
        "dispatch_claim_until": None,
        "dispatch_next_at": db_now(delay),
        "dispatch_last_error": _text(reason),
    }
    if failed:
        release["dispatch_attempts"] = F("dispatch_attempts") + 1
    if taken.withdrawing:
        return _moved(_held(taken), **release)
    processing = _held(taken).filter(dispatch_status=DispatchStatus.PROCESSING)
    return _moved(processing, dispatch_status=DispatchStatus.PENDING, **release)


def _held(taken: Taken) -> models.QuerySet[Any]:
    return rows(taken.model).filter(
        pk=taken.row["pk"],
        dispatch_claim_token=taken.claim_token,
        dispatch_fencing_token=taken.row["dispatch_fencing_token"],
    )


def _until(lease: timedelta) -> dict[str, Any]:
    return {"dispatch_claim_until": db_now(lease), "dispatch_next_at": db_now(lease)}


def _moved(queryset: models.QuerySet[Any], **changes: Any) -> bool:
    matched = queryset.update(**changes)
    assert matched <= 1, "a guard must name one row"
    return matched == 1


def _text(reason: str) -> str:
    # NUL and lone surrogates cannot be stored by every database; an error text is never refused.
    clean = reason.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    return clean[:LAST_ERROR_CHARACTERS]
