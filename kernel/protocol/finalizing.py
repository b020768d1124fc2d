"""Finalizers: the reliable end of a workflow (pure, design 1.5).

A record is begun in the write before the finalizer runs, so that a death in it is seen. It is
retried by any worker with exponential backoff, for ever and visibly; after too many process deaths
in a row, hourly.
"""

from __future__ import annotations

from kernel import limits
from kernel.model import Reason, WorkflowInstance
from kernel.protocol.commit import Commit
from kernel.protocol.expressions import Changes, Expression, Lit, Now, Record, Unset
from kernel.protocol.holding import held_commit, released
from kernel.protocol.homecoming import error_record


def record(kind: str, *, begun: bool) -> Record:
    """Return a new finalizer record; `begun` counts its first attempt in this very write."""
    fields: dict[str, Expression] = {
        "kind": Lit(kind),
        "attempt": Lit(1 if begun else 0),
        "recoveries": Lit(0),
    }
    if begun:
        fields["started_at"] = Now()
    return Record(fields)


def begin(instance: WorkflowInstance) -> Commit:
    """Count an attempt before the finalizer is entered; found started, the last one died."""
    assert instance.finalizer is not None
    changes: dict[str, Expression] = {
        "finalizer.attempt": Lit(instance.finalizer.attempt + 1),
        "finalizer.started_at": Now(),
        "finalizer.not_before": Unset(),
    }
    if instance.finalizer.started_at is not None:
        changes["finalizer.recoveries"] = Lit(instance.finalizer.recoveries + 1)
    return held_commit(instance, "begin finalizer", changes)


def failed(instance: WorkflowInstance, code: str, message: str, *, jitter: float) -> Commit:
    """Come back later: 1 s, 2 s, 4 s … up to ten minutes, spread by half."""
    assert instance.finalizer is not None
    bound = min(
        limits.FINALIZER_BACKOFF_CAP_SECONDS, 2.0 ** min(instance.finalizer.attempt - 1, 20)
    )
    changes: dict[str, Expression] = {
        "finalizer.error": error_record(code, message, None),
        "finalizer.recoveries": Lit(0),
    }
    return _later(instance, changes, int(1000 * bound * (0.5 + jitter / 2)))


def poisoned(instance: WorkflowInstance) -> Commit:
    """It keeps killing its process: look again in an hour, so that it does not eat the workers."""
    assert instance.finalizer is not None
    message = f"its process died; deaths in a row: {instance.finalizer.recoveries + 1}"
    changes: dict[str, Expression] = {
        "finalizer.error": error_record("worker_lost", message, None),
        "finalizer.recoveries": Lit(instance.finalizer.recoveries + 1),
    }
    return _later(instance, changes, 1000 * limits.FINALIZER_POISONED_SECONDS)


def _later(instance: WorkflowInstance, changes: Changes, delay_ms: int) -> Commit:
    until = Now(delay_ms)
    return held_commit(
        instance,
        "finalizer later",
        {
            **changes,
            **released(),
            "finalizer.started_at": Unset(),
            "finalizer.not_before": until,
            "claimable_time": until,
            "blocked_on": Record(
                {"reason": Lit(Reason.RETRY_BACKOFF.value), "since": Now(), "until": until}
            ),
        },
        releases=True,
    )
