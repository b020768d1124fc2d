"""The loop of one claim: look at the stored facts, do what they say, commit, look again.

One claim may carry a workflow through many steps. It ends at a wait, a retry, a terminal status, a
stop request, or when the claim is lost (design 1.5).
"""

from __future__ import annotations

from contextlib import suppress
from typing import assert_never

from kernel.definition import Definition
from kernel.engine.claims import HeldClaim
from kernel.engine.committing import commit_held
from kernel.engine.finalize import run_finalizer
from kernel.engine.machine import Machine
from kernel.engine.permits import ClaimPermits, ToNext
from kernel.engine.wave import WaveRunner
from kernel.errors import StoreUnavailable
from kernel.protocol import owning, queueing, readiness, settling, signaling
from kernel.protocol.commit import Commit
from kernel.protocol.holding import held_commit


def run_claim(
    machine: Machine, held: HeldClaim, definition: Definition, to_next: ToNext | None = None
) -> None:
    """Carry a claimed instance as far as it goes, keeping its lease alive meanwhile.

    `held.following` is then the claim that this slot has to run next, if `to_next` found one.

    On repeat: a claim is run once; the next one goes on from what was committed.
    On crash: the lease runs out and any worker goes on from the last commit.
    """
    permits = ClaimPermits(machine.permits, held, definition)
    wave = WaveRunner(machine, held, definition, permits, to_next)
    with machine.keeper.keeping(held.live):
        if machine.is_stopping():
            commit_held(
                machine.store, held, owning.hand_back(held.instance, held.begun, held.places)
            )
        else:
            wave.run_begun(held.begun)
        while not held.ended:
            if machine.is_stopping():
                commit_held(machine.store, held, owning.hand_back(held.instance))
                break
            _advance(machine, held, definition, wave, permits)
        if held.instance.claim_token is None or held.live.lost.is_set():
            permits.give_back_all()
    instance = held.instance
    if instance.claim_token is None or held.live.lost.is_set():
        # A claim abandoned in a hung call keeps its entry: that is how its end is noticed.
        machine.hints.unleased(instance.queue, instance.workflow_id, held.live.token)
    if instance.claim_token is None:
        machine.hints.place(instance, held.now)
        _look_into_inbox(machine, held)


def _advance(
    machine: Machine,
    held: HeldClaim,
    definition: Definition,
    wave: WaveRunner,
    permits: ClaimPermits,
) -> None:
    signalled = _signalled(machine, held)
    if signalled is not None:
        commit_held(machine.store, held, signalled)
        return
    action = readiness.next_action(held.instance, held.now, max_recoveries=machine.max_recoveries)
    match action:
        case readiness.RunFinalizer():
            permits.give_back_all()  # a finalizer needs none, and may take its time
            run_finalizer(machine, held, definition)
        case readiness.RunWave(steps):
            refused = permits.take_for_workflow()
            if refused is None:
                wave.run(steps)
            elif commit_held(
                machine.store, held, queueing.defer_workflow(held.instance, refused, held.now)
            ):
                permits.look_again(refused)
        case readiness.GiveUpLost(step):
            wave.give_up(step)
        case _:
            commit_held(machine.store, held, _without_running(machine, held, definition, action))


def _look_into_inbox(machine: Machine, held: HeldClaim) -> None:
    """Look once after a release that left a signal wait: a signal may have come before the wait."""
    if waits := signaling.signal_waits(held.instance):
        with suppress(StoreUnavailable):  # reconcile looks as well
            machine.look_into_inbox(held.instance.workflow_id, waits)


def _signalled(machine: Machine, held: HeldClaim) -> Commit | None:
    """Return the commit that wakes steps whose signal is in the inbox, if any is."""
    waits = signaling.signal_waits(held.instance)
    if not waits:
        return None
    try:
        signals = machine.inbox.pending_of(held.instance.workflow_id, waits)
    except StoreUnavailable:
        return None  # the look after the release, or reconcile, sees it
    return signaling.activate_held(held.instance, signals)


def _without_running(
    machine: Machine,
    held: HeldClaim,
    definition: Definition,
    action: readiness.FinishCanceled
    | readiness.EnterFailing
    | readiness.AllDone
    | readiness.ActivateDue
    | readiness.Release,
) -> Commit:
    """Return the commit of an action that enters no code: what a crash left to be done."""
    instance = held.instance
    match action:
        case readiness.FinishCanceled():
            changes = settling.canceled(instance)
            return held_commit(instance, "finish canceled", changes, releases=True)
        case readiness.EnterFailing(step):
            begins = definition.failure_finalizer is not None
            changes = settling.enter_failing(instance, step, begin_finalizer=begins)
            return held_commit(instance, "enter failing", changes)
        case readiness.AllDone():
            end = settling.all_done(machine.policy(definition))
            return held_commit(instance, "all done", end.changes, releases=end.releases)
        case readiness.ActivateDue(steps):
            return owning.activate_held(instance, steps)
        case readiness.Release():
            return owning.release(instance)
    assert_never(action)
