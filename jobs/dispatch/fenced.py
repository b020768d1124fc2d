"""Business writes of a running round, fenced by the round's number and its open statuses.

Guarantees: a late worker of an older round, or of the same round after it ended, changes nothing
(I6). Every miss is explained by one more read. Leaves to others: what a miss means to the caller;
`FencedWrite.require` gives the answer for activities, finalizers take every miss as done.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jobs.dispatch.transitions import rows
from kernel import WorkflowCanceled

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin


class FencedOutcome(StrEnum):
    """What became of a fenced write."""

    WRITTEN = "written"
    #: Nothing written: the row of this round already has the wanted status.
    ALREADY = "already"
    #: Nothing written: this round's object is in a status the writer did not expect.
    CLOSED = "closed"
    #: Nothing written: the row works for another round.
    ROUND_PASSED = "round_passed"
    #: Nothing written: the row does not exist any more.
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedWrite:
    """The outcome of a fenced write, and the row's status and round as found after it."""

    outcome: FencedOutcome
    status: str | None
    fencing_token: int | None

    @property
    def done(self) -> bool:
        """Tell whether the row now has the wanted status for this round."""
        return self.outcome in {FencedOutcome.WRITTEN, FencedOutcome.ALREADY}

    def require(self) -> FencedWrite:
        """Return the write if it is done; what an activity calls.

        Raises:
            WorkflowCanceled: the round passed, or the object is over or gone.
        """
        if not self.done:
            raise WorkflowCanceled(
                f"the business object no longer works for this round: {self.outcome.value}"
                f" (status {self.status}, round {self.fencing_token})"
            )
        return self


def fenced_update(
    model: type[DispatchMixin],
    pk: Any,
    fencing_token: int,
    *,
    from_status: str | Collection[str],
    **changes: Any,
) -> FencedWrite:
    """Write `changes` where the row works for this round and is in one of `from_status`.

    On repeat: with a status among the changes that is no longer in `from_status` the outcome is
    `already`; otherwise the same values are written again.
    """
    status_field = model.dispatch_mapping.column
    expected = {from_status} if isinstance(from_status, str) else set(from_status)
    matched = (
        rows(model)
        .filter(
            pk=pk, dispatch_fencing_token=fencing_token, **{f"{status_field}__in": sorted(expected)}
        )
        .update(**changes)
    )
    wanted = changes.get(status_field)
    if matched and wanted is not None:
        return FencedWrite(
            outcome=FencedOutcome.WRITTEN, status=wanted, fencing_token=fencing_token
        )
    row = rows(model).filter(pk=pk).values_list(status_field, "dispatch_fencing_token").first()
    status, token = row or (None, None)
    return FencedWrite(
        outcome=_outcome(bool(matched), row, fencing_token, wanted),
        status=status,
        fencing_token=token,
    )


def _outcome(
    matched: bool, row: tuple[Any, Any] | None, fencing_token: int, wanted: Any
) -> FencedOutcome:
    if matched:
        return FencedOutcome.WRITTEN
    if row is None:
        return FencedOutcome.GONE
    status, token = row
    if token != fencing_token:
        return FencedOutcome.ROUND_PASSED
    if wanted is not None and status == wanted:
        return FencedOutcome.ALREADY
    return FencedOutcome.CLOSED
