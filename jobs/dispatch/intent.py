"""An intent as a value: what one round of one generation asks the kernel to do.

Guarantees: the stored snapshot repeats the row's identity, so a row whose columns and snapshot
disagree (a hand-made repair, a restored backup) is noticed before anything is started from it.
Leaves to others: writing it (`requests`), sending it (`registration`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from jobs.dispatch.mixin import DispatchMixin

#: The columns of an intent that identify a round, and those it is read from.
COLUMNS = (
    "pk",
    "dispatch_type",
    "dispatch_biz_key",
    "dispatch_fencing_token",
    "dispatch_input",
    "dispatch_priority",
    "dispatch_supersedes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One round's call of `start_or_resume`, taken from a committed or about-to-be-inserted row."""

    model: type[DispatchMixin]
    pk: Any
    #: Workflow type, as in the model's plans.
    type: str
    biz_key: str
    #: Number of the business round, from 1.
    fencing_token: int
    #: What the workflow gets as input.
    input: dict[str, Any]
    priority: int
    #: biz_key of the generation this one ends before it starts; None for a first generation.
    supersedes: str | None = None

    def snapshot(self) -> dict[str, Any]:
        """Give what `dispatch_input` keeps: the whole call, identity included."""
        return {
            "type": self.type,
            "biz_key": self.biz_key,
            "fencing_token": self.fencing_token,
            "input": self.input,
        }

    def columns(self) -> dict[str, Any]:
        """Give the columns that make a row carry this intent, apart from status and time."""
        return {
            "dispatch_type": self.type,
            "dispatch_biz_key": self.biz_key,
            "dispatch_fencing_token": self.fencing_token,
            "dispatch_input": self.snapshot(),
            "dispatch_priority": self.priority,
            "dispatch_supersedes": self.supersedes,
            "dispatch_claim_token": None,
            "dispatch_claim_until": None,
            "dispatch_attempts": 0,
            "dispatch_last_error": "",
        }


class Disagreement(Exception):
    """The snapshot in a row names another workflow, generation or round than its columns."""


def read_intent(model: type[DispatchMixin], row: dict[str, Any]) -> Intent:
    """Build the intent from a row's `COLUMNS`.

    Raises:
        Disagreement: snapshot and columns do not say the same; the message names the difference.
    """
    snapshot = row["dispatch_input"]
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("input"), dict):
        raise Disagreement("dispatch_input holds no snapshot; restore it or cancel the object")
    for name in ("type", "biz_key", "fencing_token"):
        if snapshot.get(name) != row[f"dispatch_{name}"]:
            raise Disagreement(
                f"dispatch_input says {name} {snapshot.get(name)!r}, the column says "
                f"{row[f'dispatch_{name}']!r}; repair the row or cancel the object"
            )
    return replace(read_identity(model, row), input=snapshot["input"])


def read_identity(model: type[DispatchMixin], row: dict[str, Any]) -> Intent:
    """Build an intent without input: all a withdrawal needs, whatever the snapshot says."""
    return Intent(
        model=model,
        pk=row["pk"],
        type=row["dispatch_type"],
        biz_key=row["dispatch_biz_key"],
        fencing_token=row["dispatch_fencing_token"],
        input={},
        priority=row["dispatch_priority"],
        supersedes=row["dispatch_supersedes"],
    )


def this_round(rows: models.QuerySet[Any], intent: Intent) -> models.QuerySet[Any]:
    """Narrow `rows` to the row of this intent while it still shows this round and generation."""
    return rows.filter(
        pk=intent.pk,
        dispatch_biz_key=intent.biz_key,
        dispatch_fencing_token=intent.fencing_token,
    )
