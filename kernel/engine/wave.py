"""Runs one wave: its steps begin in one write, run in parallel, and come home one by one.

A wave is closed: all its steps come home before anything else begins. Only the last one home
settles the instance (design 1.5). A linear plan has waves of one step, and its last one home begins
the next step in the same write.
"""

from __future__ import annotations

import concurrent.futures
from functools import partial
from typing import Any, Final

from kernel import limits
from kernel.context import Cancellation
from kernel.definition import Definition
from kernel.engine import contexts
from kernel.engine.claims import HeldClaim
from kernel.engine.committing import commit_held, mark_held
from kernel.engine.invoke import Hung
from kernel.engine.machine import Machine
from kernel.engine.permits import ClaimPermits, ToNext
from kernel.errors import ValueTooLarge
from kernel.protocol import beginning, homecoming, queueing
from kernel.protocol.apply import apply_changes
from kernel.protocol.coming_home import home_alone, home_last
from kernel.protocol.outcomes import Canceled, Completed, Failed, Outcome
from kernel.protocol.resources import Refusal

#: Outputs smaller than this cannot make a document too large in any plan of allowed length.
_SMALL_OUTPUT_BYTES: Final = 8 * 1024
#: How long this process may take to notice the end of the hang grace by itself.
_LEAVING_SECONDS: Final = 1.0


class WaveRunner:
    """Runs waves of one claim until no next step begins in the same write."""

    def __init__(
        self,
        machine: Machine,
        held: HeldClaim,
        definition: Definition,
        permits: ClaimPermits,
        to_next: ToNext | None,
    ) -> None:
        self._machine = machine
        self._held = held
        self._definition = definition
        self._permits = permits
        self._to_next = to_next
        #: The next step, where its permits were refused in the last write of a wave.
        self._put_off: dict[str, Refusal] = {}

    def run(self, steps: tuple[str, ...]) -> None:
        """Begin these steps and run waves until the loop has to decide again.

        Those whose permits are refused are put off in the same write; where all are, the claim
        ends with it.
        """
        refused = self._permits.take(steps)
        steps = tuple(name for name in steps if name not in refused)
        if steps:
            commit = beginning.begin(self._held.instance, steps, refused)
        else:
            commit = queueing.defer(self._held.document, refused, self._held.now)
        begun = commit_held(self._machine.store, self._held, commit)
        if not begun:
            self._give_back(steps)
        self._permits.look_again(refused)
        if begun:
            self.run_begun(steps)

    def run_begun(self, steps: tuple[str, ...]) -> None:
        """Run steps that have begun, and those that begin with the end of theirs."""
        while steps and not self._held.ended:
            steps = self._run_begun(steps)

    def give_up(self, step: str) -> None:
        """End a step whose process died too often, without entering it again."""
        instance = self._held.instance
        changes = homecoming.worker_lost(
            instance,
            step,
            on_failed=self._definition.steps[step].on_failed,
            deaths=instance.steps[step].recoveries + 1,
        )
        home = home_last(
            instance,
            self._held.document,
            step,
            changes,
            wave=(step,),
            now=self._held.now,
            policy=self._machine.policy(self._definition, fuses=False),
        )
        commit_held(self._machine.store, self._held, home.commit, home.document)

    def _run_begun(self, wave: tuple[str, ...]) -> tuple[str, ...]:
        """Run steps that have begun; return those the last one home began."""
        if not self._mark_signals(wave):
            self._held.ended = True
            return ()
        away = set(wave)
        calls = {name: Cancellation() for name in wave}
        for cancelled in calls.values():
            # All before the first one runs, so that its cancel reaches those that start later.
            self._held.live.add_call(cancelled)
        if len(wave) == 1:
            begun = [self._run_step(wave[0], calls[wave[0]], wave, away)]
        else:
            futures = [
                self._machine.wave_threads.submit(partial(self._run_beside, name, call, wave, away))
                for name, call in calls.items()
            ]
            with self._machine.motion.resting:
                concurrent.futures.wait(futures)
            begun = [future.result() for future in futures]
        if away:
            self._held.ended = True  # a hung call keeps its claim until the lease is over
        return next((steps for steps in begun if steps), ())

    def _mark_signals(self, wave: tuple[str, ...]) -> bool:
        """Mark what woke these steps, after that was stored and before they can wait anew."""
        resumes = (self._held.instance.steps[name].resume for name in wave)
        ids = [r.signal_id for r in resumes if r is not None and r.signal_id is not None]
        return not ids or mark_held(self._machine.inbox, self._held, ids)

    def _run_beside(
        self, step: str, cancelled: Cancellation, wave: tuple[str, ...], away: set[str]
    ) -> tuple[str, ...]:
        with self._machine.motion.moving:
            return self._run_step(step, cancelled, wave, away)

    def _run_step(
        self, step: str, cancelled: Cancellation, wave: tuple[str, ...], away: set[str]
    ) -> tuple[str, ...]:
        held = self._held
        timeout = self._definition.steps[step].timeout_seconds
        held.live.entered(step, seconds=timeout + self._machine.hang_grace + _LEAVING_SECONDS)
        try:
            with self._machine.motion.resting:
                outcome = self._invoke(step, cancelled)
        finally:
            held.live.remove_call(cancelled)
        if isinstance(outcome, Hung):
            return ()
        held.live.left(step)
        self._put_off = {}
        # The call is over: its permits go to the next while its outcome is written.
        given = self._giving_back(step, ends=self._ends_with(step, outcome))
        try:
            with held.lock:
                away.discard(step)
                if held.live.lost.is_set():
                    held.ended = True
                    return ()
                if isinstance(outcome, Canceled):
                    held.live.cancel_calls("canceled")
                return self._come_home(step, outcome, wave, last=not away)
        finally:
            if given is not None:
                given.result()
            self._permits.look_again(self._put_off)

    def _giving_back(self, step: str, *, ends: bool) -> concurrent.futures.Future[None] | None:
        if not self._permits.holds_any(step):
            return None
        if self._permits.has_room(step):
            self._permits.give_back(step)
            return None
        if ends and self._to_next is not None:
            passing = partial(self._permits.pass_on, step, self._to_next)
            return self._machine.wave_threads.submit(passing)
        return self._machine.wave_threads.submit(partial(self._permits.give_back, step))

    def _ends_with(self, step: str, outcome: Outcome) -> bool:
        """Tell whether the claim is sure to end with the write of this outcome."""
        others = (s for name, s in self._held.instance.steps.items() if name != step)
        return (
            isinstance(outcome, Completed)
            and self._definition.success_finalizer is None
            and all(state.is_done for state in others)
        )

    def _invoke(self, step: str, cancelled: Cancellation) -> Outcome | Hung:
        policy = self._definition.steps[step]
        if (unnamed := self._permits.failure_of(step)) is not None:
            return unnamed
        ports = self._machine.ports(self._definition)

        def call() -> Any:
            # Built inside the door, so that an input its model refuses is the step's own failure.
            context = contexts.activity_context(
                self._held,
                self._definition,
                step,
                ports=ports,
                cancelled=cancelled,
                capacity=self._permits.for_activity(step),
            )
            return policy.activity(context)

        return self._machine.invoker.activity(
            call,
            step=step,
            timeout=policy.timeout_seconds,
            cancelled=cancelled,
            retry=policy.retry,
        )

    def _come_home(
        self, step: str, outcome: Outcome, wave: tuple[str, ...], *, last: bool
    ) -> tuple[str, ...]:
        try:
            return self._commit_home(step, self._fitting(step, outcome), wave, last=last)
        except ValueTooLarge as exc:
            return self._commit_home(step, _too_large(exc), wave, last=last)

    def _commit_home(
        self, step: str, outcome: Outcome, wave: tuple[str, ...], *, last: bool
    ) -> tuple[str, ...]:
        held = self._held
        policy = self._definition.steps[step]
        changes = homecoming.come_home(
            held.instance,
            step,
            outcome,
            retry=policy.retry,
            on_failed=policy.on_failed,
            jitter=self._machine.jitter(),
        )
        if not last:
            commit_held(self._machine.store, held, home_alone(held.instance, step, changes).commit)
            return ()
        settled = partial(
            home_last,
            held.instance,
            held.document,
            step,
            changes,
            wave=wave,
            policy=self._machine.policy(self._definition),
        )
        home = settled(now=held.now)
        refused = self._permits.take(home.begins, leaving=step)
        if refused:
            home = settled(now=held.now, refused=refused)
        try:
            is_home = commit_held(self._machine.store, held, home.commit, home.document)
        except ValueTooLarge:
            self._give_back(home.begins)
            raise
        if not is_home:
            self._give_back(home.begins)
            return ()
        self._put_off = refused
        return home.begins

    def _give_back(self, steps: tuple[str, ...]) -> None:
        """Give back what was taken for steps that did not begin."""
        for name in steps:
            self._permits.give_back(name, unused=True)

    def _fitting(self, step: str, outcome: Outcome) -> Outcome:
        """Refuse an output with which the instance would outgrow its document."""
        if not isinstance(outcome, Completed) or outcome.size_bytes < _SMALL_OUTPUT_BYTES:
            return outcome
        held = self._held
        grown = apply_changes(
            held.document, homecoming.completed(held.instance, step, outcome.output), held.now
        )
        size = self._machine.document_bytes(grown)
        if size <= limits.DOCUMENT_BYTES:
            return outcome
        return _too_large(
            ValueTooLarge(size_bytes=size, limit_bytes=limits.DOCUMENT_BYTES, what="instance")
        )


def _too_large(exc: ValueTooLarge) -> Failed:
    return Failed(code=exc.code, message=str(exc), retryable=False)
