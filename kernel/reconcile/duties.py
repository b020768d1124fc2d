"""One reconciliation run: every part in turn, under a lease, apart from the others' failure.

Guarantees that a run is bounded, resumable and alone. Leaves to others: what each part looks for.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kernel.engine.hinting import HintWriter
from kernel.engine.permits import PermitDesk
from kernel.errors import KernelError
from kernel.reconcile import ended_permits, lost_candidates
from kernel.reconcile.due_waits import activate_due_waits
from kernel.reconcile.pending_signals import match_pending_signals
from kernel.reconcile.turn import Turn
from kernel.signals import SignalDelivery
from kernel.store import DutyLeases, GroupedInstances, InstanceScan, SignalInbox

log: Final = logging.getLogger("baton.reconcile")

DUTY: Final = "reconcile"
_LEASE_MS: Final = 60_000
#: Instances one part looks at before the others get their turn.
_BOUND: Final = 1_000
#: Turns of one run, so that a run ends; the cursors let the next one go on.
_TURNS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What one run found, by part; `ran` is False when another process was at it.

    `lanes_whole` says that every due instance has been pushed since the run began.
    """

    ran: bool
    lanes_whole: bool = False
    found: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Reconciler:
    """Runs the parts the kernel knows, and those the host adds (the outbox)."""

    def __init__(
        self,
        *,
        scan: InstanceScan,
        instances: GroupedInstances,
        leases: DutyLeases,
        hints: HintWriter,
        inbox: SignalInbox,
        delivery: SignalDelivery,
        permits: PermitDesk,
        holder: str,
    ) -> None:
        self._leases = leases
        self._holder = holder
        self._parts: dict[str, Callable[[], Turn]] = {
            "due_waits": lambda: activate_due_waits(scan, instances, hints, limit=_BOUND),
            lost_candidates.PART: lambda: lost_candidates.push_lost_candidates(
                scan, hints, leases, duty=DUTY, holder=holder, limit=_BOUND
            ),
            "pending_signals": lambda: match_pending_signals(
                inbox, delivery, leases, duty=DUTY, holder=holder, limit=_BOUND
            ),
            ended_permits.PART: lambda: ended_permits.free_ended_permits(
                permits, leases, duty=DUTY, holder=holder, limit=_BOUND
            ),
        }

    def run(self, *, rebuild: bool = False) -> Reconciled:
        """Run every part until its work is done; return what had been lost.

        With `rebuild`, after Redis lost everything: from the oldest instance on and however many
        there are. On repeat: nothing is left to find. Two at once: the second returns at once.

        Raises:
            StoreUnavailable: MongoDB did not answer at all.
        """
        if not self._leases.acquire(DUTY, self._holder, lease_ms=_LEASE_MS):
            return Reconciled(ran=False)
        found: Counter[str] = Counter()
        failed: dict[str, str] = {}
        try:
            open_parts = dict(self._parts)
            if rebuild:
                self._leases.keep_cursor(DUTY, self._holder, lost_candidates.PART, None)
            for _ in itertools.count() if rebuild else range(_TURNS):
                for name, part in list(open_parts.items()):
                    turn = self._part(name, part, failed)
                    found[name] += turn.found
                    if not turn.is_full:
                        del open_parts[name]
                if not open_parts or not self._leases.acquire(
                    DUTY, self._holder, lease_ms=_LEASE_MS
                ):
                    break
        finally:
            self._leases.release(DUTY, self._holder)
        is_whole = rebuild and not {lost_candidates.PART} & (open_parts.keys() | failed.keys())
        return Reconciled(ran=True, lanes_whole=is_whole, found=dict(found), failed=failed)

    def _part(self, name: str, part: Callable[[], Turn], failed: dict[str, str]) -> Turn:
        try:
            return part()
        except KernelError as exc:
            failed[name] = str(exc)
            log.warning("reconcile part %s: %s", name, exc)
        except Exception as exc:
            # Whatever stands in one document: the other parts, and the host's, go on.
            failed[name] = f"{type(exc).__name__}: {exc}"
            log.exception("reconcile part %s", name)
        return Turn(0, is_full=False)
