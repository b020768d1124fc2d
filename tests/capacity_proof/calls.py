"""What a list of calls says about limits; pure.

A permit belongs to an owner: workflow, step and claim. A process that was stopped for longer than
its lease has lost its claim, and the call it had begun cannot be called back: limits are promised
for living owners, and calls of lost claims are counted apart. A call is one of a lost claim when
another owner called for the same step before this call had ended, or when a test that stopped a
process says so.

Guarantees: moments are compared as the provider's process saw them. Leaves to others: making calls.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, on the provider's clocks; `granted` is when its permit began (Unix, database)."""

    workflow: str
    step: str
    owner: str
    group: str
    granted: float | None
    began: float
    began_at: float
    ended: float | None
    dropped: bool = False

    @property
    def end(self) -> float:
        """When it ended; never, for one that goes on."""
        return math.inf if self.ended is None else self.ended


def lost(calls: Sequence[Call]) -> list[Call]:
    """Return the calls of claims that were lost while the call went on."""
    of_step: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        of_step[call.workflow, call.step].append(call)
    return [
        call
        for siblings in of_step.values()
        for call in siblings
        if any(
            other.owner != call.owner and call.began < other.began < call.end for other in siblings
        )
    ]


def most_in_flight(calls: Sequence[Call], *, apart: Collection[Call] = ()) -> int:
    """Return the most calls that were in flight at one moment, without those counted apart."""
    changes = [
        change
        for call in calls
        if call not in apart
        for change in ((call.began, 1), (call.end, -1))
    ]
    most = now = 0
    # An end and a begin at the same moment: the end came first.
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def violations(calls: Sequence[Call], limit: int, *, apart: Collection[Call] = ()) -> int:
    """Count the calls that began while `limit` others were in flight."""
    counted = [call for call in calls if call not in apart]
    return sum(
        sum(other.began <= call.began < other.end for other in counted) > limit for call in counted
    )


def most_in_window(moments: Sequence[float], rate: float) -> int:
    """Return the most moments in any window that may have at most `ceil(rate)` of them."""
    ordered = sorted(moments)
    # Milliseconds are what the database's clock has; a start just at the window's end is outside.
    window = math.ceil(rate) / rate - 0.0005
    return max(
        (
            sum(first <= moment < first + window for moment in ordered[index:])
            for index, first in enumerate(ordered)
        ),
        default=0,
    )


def utilisation(calls: Sequence[Call], limit: int) -> float:
    """Return the share of the limit that was used, from the first begin to the last end."""
    span = max(call.end for call in calls) - min(call.began for call in calls)
    return sum(call.end - call.began for call in calls) / (limit * span)


def displacement(calls: Sequence[Call], order: Sequence[str]) -> int:
    """Return how far a workflow came to its call from its place in `order`, at most."""
    came = {
        workflow: place for place, workflow in enumerate(dict.fromkeys(c.workflow for c in calls))
    }
    return max(abs(came[workflow] - place) for place, workflow in enumerate(order))
