"""What really happened outside: one line a call of activity code, on disk before the call goes on.

Guarantees that a line survives the death of its process, and that lines of several processes do
not mix (one append each). Leaves what the counts mean to the scenarios.
"""

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel import ActivityContext, FinalizerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One call: of which instance, round, step (or finalizer) and attempt, in which process."""

    biz_key: str
    round: int
    step: str
    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """A file of entries."""

    path: Path

    def enter(self, ctx: ActivityContext) -> None:
        """Note that a step's activity has been entered."""
        self._append(ctx.biz_key, ctx.fencing_token, ctx.step, ctx.attempt)

    def enter_finalizer(self, ctx: FinalizerContext) -> None:
        """Note that a finalizer has been entered, as step `finalizer`."""
        self._append(ctx.biz_key, ctx.fencing_token, "finalizer", ctx.attempt)

    def entries(self) -> list[Entry]:
        """Return all entries so far."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [Entry(**json.loads(line)) for line in lines]

    def counts(self) -> Counter[tuple[str, int, str]]:
        """Return how often each (biz_key, round, step) was entered."""
        return Counter((entry.biz_key, entry.round, entry.step) for entry in self.entries())

    def entered(self, step: str) -> int:
        """Return how often a step was entered in all rounds of all instances."""
        return sum(entry.step == step for entry in self.entries())

    def _append(self, biz_key: str, number: int, step: str, attempt: int) -> None:
        entry = Entry(biz_key=biz_key, round=number, step=step, attempt=attempt, pid=os.getpid())
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, json.dumps(asdict(entry)).encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
