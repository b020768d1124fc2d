"""The reliable end of a workflow: its finalizer, then the terminal status (design 1.5).

A finalizer's attempt is recorded in the write before it runs. What it raises is stored and tried
again by any worker, with backoff, for ever; only its success lets the instance end.
"""

from __future__ import annotations

from kernel import limits
from kernel.context import Cancellation
from kernel.definition import Definition, RetryPolicy
from kernel.engine import contexts
from kernel.engine.claims import HeldClaim
from kernel.engine.committing import commit_held
from kernel.engine.invoke import failure, text_of
from kernel.engine.machine import Machine
from kernel.errors import WorkflowCanceled
from kernel.model import FinalizerState, InstanceStatus
from kernel.protocol import finalizing, settling
from kernel.protocol.commit import Commit
from kernel.protocol.holding import held_commit
from kernel.protocol.outcomes import Failed


def run_finalizer(machine: Machine, held: HeldClaim, definition: Definition) -> None:
    """Bring an instance that is at its end to its terminal status, or leave it for later."""
    record = held.instance.finalizer
    is_failure = held.instance.status is InstanceStatus.FAILING
    call = definition.failure_finalizer if is_failure else definition.success_finalizer
    end = InstanceStatus.FAILED if is_failure else InstanceStatus.COMPLETED
    if call is None or record is None:
        commit_held(machine.store, held, _finish(held, end))
        return
    if _was_interrupted(record, held) and record.recoveries + 1 > machine.max_recoveries:
        commit_held(machine.store, held, finalizing.poisoned(held.instance))
        return
    begins = record.started_at is None or _was_interrupted(record, held)
    if begins and not commit_held(machine.store, held, finalizing.begin(held.instance)):
        return
    raised = _call(machine, held, definition, is_failure=is_failure)
    if not held.ended:
        commit_held(machine.store, held, _outcome(machine, held, raised, end))


def _was_interrupted(record: FinalizerState, held: HeldClaim) -> bool:
    """Found started by an earlier claim: its process died or hung inside it."""
    return record.started_at is not None and record.started_at < held.claimed_at


def _call(
    machine: Machine, held: HeldClaim, definition: Definition, *, is_failure: bool
) -> BaseException | None:
    call = definition.failure_finalizer if is_failure else definition.success_finalizer
    assert call is not None
    cancelled = Cancellation()
    timeout = float(limits.FINALIZER_TIMEOUT_SECONDS)
    ports = machine.ports(definition)
    held.live.entered("finalizer", seconds=timeout + machine.hang_grace + 1)
    held.live.add_call(cancelled)
    try:
        with machine.motion.resting:
            return machine.invoker.finalizer(
                lambda: call(
                    contexts.finalizer_context(held, definition, ports=ports, cancelled=cancelled)
                ),
                timeout=timeout,
                cancelled=cancelled,
            )
    except TimeoutError:
        held.ended = True  # hung: the claim is left to its lease, the record says it was started
        return None
    finally:
        held.live.remove_call(cancelled)
        if not held.ended:
            held.live.left("finalizer")


def _outcome(
    machine: Machine, held: HeldClaim, raised: BaseException | None, end: InstanceStatus
) -> Commit:
    if raised is None:
        return _finish(held, end)
    if isinstance(raised, WorkflowCanceled):
        # Nothing left to compensate counts as done; a success that should not be ends canceled.
        if end is InstanceStatus.FAILED:
            return _finish(held, end)
        return held_commit(
            held.instance,
            "finish canceled",
            settling.canceled_at_the_end(held.instance, text_of(raised)),
            releases=True,
        )
    failed = failure(raised, RetryPolicy())
    assert isinstance(failed, Failed)
    return finalizing.failed(held.instance, failed.code, failed.message, jitter=machine.jitter())


def _finish(held: HeldClaim, end: InstanceStatus) -> Commit:
    changes = settling.finish(held.instance, end)
    return held_commit(held.instance, f"finish {end.value}", changes, releases=True)
