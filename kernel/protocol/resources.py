"""A capacity resource as read: what it grants, and when it may again (pure, design 2.5).

Guarantees that looking says the same as the update that grants: the store's pipelines decide by the
rules below, on the same fields. Leaves to others: granting (`kernel.store.capacity`), since only an
update can; what is computed here chooses whom to try, when to look again, and what to show.

The rules, all on the database's clock:

- a holder or reservation counts until its `expires`;
- **concurrency**: holders and other people's reservations together stay below the limit;
- **rate** r: fewer than n = ceil(r) starts among those of the last n/r seconds;
- **paused** and **cooldown**: nothing starts;
- **line**: while it is set, only a reservation is granted. It is set by every refusal, to the
  number of that refusal, so that no value comes twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kernel import limits


@dataclass(frozen=True, slots=True)
class PermitOwner:
    """Whose a permit is: a step (None: the workflow) of one claim; a new claim is a new owner."""

    workflow_id: str
    step: str | None
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a step may not begin: `resources` refused, `needs` are all it names; look in `retry_ms`.

    `paused` says that a person has to end it.
    """

    resources: tuple[str, ...]
    needs: tuple[str, ...]
    retry_ms: int
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A permit in force."""

    owner: PermitOwner
    since: datetime
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState:
    """One resource at `now`; expired holders, reservations and overrides are left out already."""

    name: str
    now: datetime
    revision: int = 0
    max_concurrency: int | None = None
    max_starts_per_second: float | None = None
    paused: bool = False
    cooldown_until: datetime | None = None
    override_until: datetime | None = None
    holders: tuple[Held, ...] = ()
    reserved: tuple[str, ...] = ()
    #: Of these, who waits for another resource yet: one at most.
    gathering: tuple[str, ...] = ()
    #: Who got a place by the update that was just made, if it was to keep some.
    handed: tuple[str, ...] = ()
    starts: tuple[datetime, ...] = ()
    line: int = 0
    queued: int = 0
    hold_ms: float | None = None
    granted: int = 0
    refused: int = 0
    history: tuple[dict[str, Any], ...] = ()

    def holds(self, owner: PermitOwner) -> bool:
        """Tell whether this owner has a permit."""
        return any(held.owner == owner for held in self.holders)

    def knows(self, workflow_id: str) -> bool:
        """Tell whether a workflow has a permit or a place here."""
        holds = any(held.owner.workflow_id == workflow_id for held in self.holders)
        return holds or workflow_id in self.reserved

    @property
    def is_open(self) -> bool:
        """Neither paused nor cooling down."""
        return not self.paused and (self.cooldown_until is None or self.cooldown_until <= self.now)

    @property
    def is_full(self) -> bool:
        """As many hold a permit, or have a place, as may at once."""
        taken = len(self.holders) + len(self.reserved)
        return self.max_concurrency is not None and taken >= self.max_concurrency

    def places(self) -> int:
        """Return how many more may be handed out now, beyond holders and reservations."""
        if not self.is_open:
            return 0
        free = limits.HAND_OUT_MAX
        if self.max_concurrency is not None:
            free = min(free, self.max_concurrency - len(self.holders) - len(self.reserved))
        if self.max_starts_per_second is not None:
            count, window = rate_window(self.max_starts_per_second)
            recent = sum(1 for start in self.starts if start >= self.now - window)
            free = min(free, count - recent - len(self.reserved))
        return max(0, free)

    def next_start_at(self) -> datetime | None:
        """Return when rate and cooldown allow the next start; None: now, or nobody can tell."""
        moments = []
        if self.cooldown_until is not None:
            moments.append(self.cooldown_until)
        if self.max_starts_per_second is not None:
            count, window = rate_window(self.max_starts_per_second)
            ahead = count - len(self.reserved)
            if 0 < ahead <= len(self.starts):
                moments.append(self.starts[-ahead] + window + timedelta(milliseconds=1))
            elif ahead <= 0:
                moments.append(self.now + window)
        at = max(moments, default=None)
        return at if at is not None and at > self.now and not self.paused else None

    def wait_seconds(self, position: int) -> float | None:
        """Estimate how long the one at this place in the line (from 1) waits; None: no idea.

        Of one that is full, only how long permits have been held tells when one comes back.
        """
        if self.paused or (self.is_full and self.hold_ms is None):
            return None
        waits = [0.0]
        if (opens := self.next_start_at()) is not None:
            waits.append((opens - self.now).total_seconds())
        if self.max_starts_per_second is not None:
            waits.append(waits[-1] + (position - 1) / self.max_starts_per_second)
        if self.max_concurrency is not None and self.hold_ms is not None:
            waits.append(position * self.hold_ms / 1000 / self.max_concurrency)
        return max(waits)

    def retry_ms(self) -> int:
        """Return when a refused one looks by itself; a hand-on comes long before, as a rule."""
        # Twice the estimate: who looks before its turn is only refused once more.
        wait = max(limits.PERMIT_RETRY_SECONDS, 2 * (self.wait_seconds(self.queued + 1) or 0))
        return int(1000 * min(limits.PERMIT_RETRY_SECONDS_MAX, wait))


def rate_window(rate: float) -> tuple[int, timedelta]:
    """Return how many starts a window may hold, and how long it is."""
    count = math.ceil(rate)
    return count, timedelta(milliseconds=math.ceil(1000 * count / rate))


def refusal(
    states: Iterable[ResourceState],
    needs: tuple[str, ...],
    *,
    uncertain: tuple[str, ...] = (),
    unreadable: tuple[str, ...] = (),
) -> Refusal:
    """Return the refusal by resources that granted nothing.

    `uncertain` ones did not answer, `unreadable` ones hold what this version does not know.
    """
    refused = tuple(states)
    waits = [state.retry_ms() for state in refused]
    waits += [1000 * limits.PERMIT_UNCERTAIN_SECONDS for _ in uncertain]
    waits += [1000 * limits.PERMIT_RETRY_SECONDS for _ in unreadable]
    return Refusal(
        resources=tuple(sorted({*(state.name for state in refused), *uncertain, *unreadable})),
        needs=needs,
        retry_ms=max(waits),
        paused=any(state.paused for state in refused),
    )
