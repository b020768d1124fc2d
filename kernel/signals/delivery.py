"""Bringing a page of signals to the instances that wait for them.

Guarantees: recorded before anybody is woken; woken under the revision that was read; marked after
both. A slow hand whose signal has woken a step that is completed by now never wakes the next one:
whether a signal is still pending is read after its instance, and the guard refuses every change
since. Leaves to others: what a caller did not live to finish (`kernel.reconcile`, or the holder of
the next claim).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from kernel import limits
from kernel.engine.hinting import HintWriter
from kernel.engine.placing import place_due
from kernel.errors import InvalidValue
from kernel.model import InstanceStatus, Signal, Wait
from kernel.protocol import signaling
from kernel.protocol.commit import Commit
from kernel.signals.identity import is_same, refuse_second_use
from kernel.store import GroupedInstances, InstanceScan, Outline, SignalInbox
from kernel.store.signals import MATCHED, PENDING, UNMATCHED

_MAX_RACES: Final = 20


class SignalDelivery:
    """Brings signals to waiting instances; safe to repeat at every point."""

    def __init__(
        self,
        inbox: SignalInbox,
        scan: InstanceScan,
        instances: GroupedInstances,
        hints: HintWriter,
    ) -> None:
        self._inbox = inbox
        self._scan = scan
        self._instances = instances
        self._hints = hints

    def deliver(self, signals: Sequence[Signal]) -> list[bool]:
        """Record and deliver checked signals; tells of each whether it was newly recorded.

        On repeat: tried again while pending. A signal of an instance that has ended is closed as
        unmatched and answers False. An id that is recorded for another wait already is refused
        after all others have been delivered.

        Raises:
            InvalidValue: an id that names two waits; within this call, nothing was written.
            StoreUnavailable: repeat with the same signal_ids.
        """
        _refuse_contradictions(signals)
        answers: list[bool] = []
        refused: list[tuple[int, InvalidValue]] = []
        for begin in range(0, len(signals), limits.PAGE_WRITES):
            page = signals[begin : begin + limits.PAGE_WRITES]
            is_new = self._inbox.insert_all(page)
            pending = {one.signal_id: one for one, new in zip(page, is_new, strict=True) if new}
            repeated = [one.signal_id for one, new in zip(page, is_new, strict=True) if not new]
            known = self._inbox.get_all(repeated)
            for number, signal in enumerate(page, start=begin):
                earlier = known.get(signal.signal_id)
                if earlier is None:
                    continue  # it is new, or waits for a process that can read what is recorded
                if not is_same(earlier, signal):
                    refused.append((number, refuse_second_use(signal)))
                elif earlier.status == PENDING:
                    pending[signal.signal_id] = signal
            closed = self.match(list(pending.values()))
            answers += [
                new and closed.get(one.signal_id) != UNMATCHED
                for one, new in zip(page, is_new, strict=True)
            ]
        for number, refusal in refused:
            raise refusal if len(signals) == 1 else refusal.within(f"signals[{number}]")
        return answers

    def match(self, signals: Sequence[Signal]) -> dict[str, str]:
        """Try to wake whoever waits for recorded signals; return how those that are over closed."""
        closed: dict[str, str] = {}
        left = list(signals)
        for _ in range(_MAX_RACES):
            if not left:
                break
            left = self._match_once(left, closed)
        return closed

    def look(self, workflow_id: str, waits: Sequence[Wait]) -> None:
        """Look into the inbox once for an instance that has just begun these waits."""
        self.match(self._inbox.pending_of(workflow_id, waits))

    def _match_once(self, signals: Sequence[Signal], closed: dict[str, str]) -> list[Signal]:
        """Close what is decided, wake what can be; return what has to be looked at again."""
        by_instance: dict[str, list[Signal]] = defaultdict(list)
        for signal in signals:
            by_instance[signal.workflow_id].append(signal)
        outlines = self._scan.outlines(by_instance)
        spent, ended, matching = [], [], []
        for workflow_id, outline in outlines.items():
            for signal in by_instance[workflow_id]:
                if signaling.is_spent(outline.instance, signal):
                    spent.append(signal)
                elif outline.instance.status.is_terminal:
                    ended.append(signal)
                elif signaling.is_awaited(outline.instance, signal):
                    matching.append(signal)
                # Else it is early, or somebody holds the instance, who looks into the inbox.
        self._place_left_behind(outlines[signal.workflow_id] for signal in spent)
        woken = self._wake(matching, outlines, closed)
        again = [] if woken is not None else matching
        self._close(chain(spent, woken or ()), MATCHED, closed)
        self._close(ended, UNMATCHED, closed)
        if ended:
            # Those of them that had woken a step before are marked as matched, and stay so.
            kept = self._inbox.get_all([signal.signal_id for signal in ended])
            closed.update({signal_id: signal.status for signal_id, signal in kept.items()})
        return again

    def _wake(
        self, matching: Sequence[Signal], outlines: dict[str, Outline], closed: dict[str, str]
    ) -> list[Signal] | None:
        """Wake the instances; return the signals that did it, None if not every guard held."""
        # After the instances were read, and the commits are guarded by those revisions: a signal
        # that has woken a step which is completed by now must not wake the next one.
        known = self._inbox.get_all([signal.signal_id for signal in matching])
        by_instance: dict[str, list[Signal]] = defaultdict(list)
        for signal in matching:
            stored = known.get(signal.signal_id)
            if stored is not None and stored.status == PENDING:
                by_instance[signal.workflow_id].append(signal)
            elif stored is not None:
                closed[signal.signal_id] = stored.status
        commits: list[Commit] = []
        used: list[Signal] = []
        for workflow_id, candidates in by_instance.items():
            instance = outlines[workflow_id].instance
            commit = signaling.activate(instance, candidates)
            assert commit is not None, "each of them matches, and only their number has changed"
            ids = set(signaling.matched(instance, candidates).values())
            used += [signal for signal in candidates if signal.signal_id in ids]
            commits.append(commit)
        if self._instances.commit_all(commits) < len(commits):
            return None
        woken = [outlines[workflow_id] for workflow_id in by_instance]
        place_due(self._hints, ((one.instance, one.now) for one in woken))
        return used

    def _place_left_behind(self, woken: Iterable[Outline]) -> None:
        """Put into their lanes whom somebody woke without living to say so."""
        place_due(
            self._hints,
            (
                (one.instance, one.instance.claimable_time)
                for one in woken
                if one.instance.status is InstanceStatus.RUNNING
                and one.instance.claim_token is None
            ),
        )

    def _close(self, signals: Iterable[Signal], status: str, closed: dict[str, str]) -> None:
        ids = [signal.signal_id for signal in signals]
        self._inbox.close(ids, status)
        closed.update(dict.fromkeys(ids, status))


def _refuse_contradictions(signals: Sequence[Signal]) -> None:
    """Raise for an id that this very call uses for two waits."""
    seen: dict[str, Signal] = {}
    for number, signal in enumerate(signals):
        if not is_same(seen.setdefault(signal.signal_id, signal), signal):
            raise refuse_second_use(signal).within(f"signals[{number}]")
