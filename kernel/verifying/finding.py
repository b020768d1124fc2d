"""One contradiction in stored facts: where, of which invariant, what, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: What to do about each invariant of design 1.6, and about limits (11, design 2.5); nothing here
#: repairs anything by itself.
ADVICE: Final = {
    1: "register the round anew: start_or_resume with its number is safe to repeat",
    2: "find who writes beside the kernel, and run manage.py ensure_schema for the unique indexes",
    4: "find the writer that did not compare the claim_token; a new claim heals a held instance",
    5: "do not run it again: compare its output with what happened outside first",
    6: "find the writer that did not compare the round; replay a failed instance as a new round",
    7: "the counts only stretch retries: correct the cause, then let the instance end",
    8: "start a worker of the version that wrote it, or migrate it; nothing guesses at it",
    10: "see that beat runs tick and reconcile; then ask manage.py workflows why",
    11: "see that beat runs tick and reconcile: they free and hand on; else find who writes it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What contradicts an invariant; equal when found again unchanged.

    `subject` is a workflow_id, a signal_id, a resource, a row, or the name of an index.
    """

    subject: str
    #: Number of the invariant in design 1.6; 11 are limits.
    invariant: int
    fact: str
    biz_key: str = ""
    status: str = ""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.invariant]

    def __str__(self) -> str:
        return f"{self.biz_key or self.subject} ({self.status or '-'}): {self.fact}"
