"""A step comes home: what each outcome writes into its own step (pure, design 1.4).

These are the step's changes only. Whether the write also settles the instance is decided by
`kernel.protocol.settling`, for the last one home.
"""

from __future__ import annotations

from typing import assert_never

from kernel import limits
from kernel.definition import OnFailed, RetryPolicy
from kernel.directives import Sleep, WaitForSignal, Yield, as_seconds
from kernel.model import Reason, StepStatus, WaitKind, WorkflowInstance
from kernel.protocol import spans
from kernel.protocol.expressions import Add, Expression, Json, Lit, Now, Push, Record, Span
from kernel.protocol.holding import cleared
from kernel.protocol.outcomes import CANCELED_CODE, Canceled, Completed, Directed, Failed, Outcome

Changes = dict[str, Expression]


def come_home(
    instance: WorkflowInstance,
    step: str,
    outcome: Outcome,
    *,
    retry: RetryPolicy,
    on_failed: OnFailed,
    jitter: float,
) -> Changes:
    """Return the changes one outcome makes to its step; `jitter` in [0, 1) spreads retries."""
    match outcome:
        case Completed():
            return completed(instance, step, outcome.output)
        case Directed(directive):
            return directed(instance, step, directive)
        case Canceled(message):
            return _ended(instance, step, StepStatus.SKIPPED, "canceled", CANCELED_CODE, message)
        case Failed():
            failures = instance.steps[step].failures + 1
            if outcome.retryable and failures <= retry.max_retry:
                delay = retry.delay_seconds(failures, jitter=jitter)
                return retried(instance, step, outcome, delay_ms=int(delay * 1000))
            status = StepStatus.FAILED if on_failed is OnFailed.STOP else StepStatus.SKIPPED
            return _ended(instance, step, status, outcome.name, outcome.code, outcome.message)
    assert_never(outcome)


def completed(instance: WorkflowInstance, step: str, output: object) -> Changes:
    """The result and the fact that it exists, in one write."""
    path = f"steps.{step}"
    return {
        **_home(instance, step, StepStatus.COMPLETED, "completed"),
        f"output.{step}": Json(output),
        f"{path}.finished_at": Now(),
        **cleared(instance, step, "checkpoint", "woken_by", "error"),
    }


def retried(instance: WorkflowInstance, step: str, failed: Failed, *, delay_ms: int) -> Changes:
    """Pending again after a backoff; the error is kept for people."""
    path = f"steps.{step}"
    changes = {
        **_home(instance, step, StepStatus.PENDING, failed.name),
        f"{path}.failures": Add(1),
        f"{path}.error": error_record(failed.code, failed.message, step),
    }
    if delay_ms > 0:
        changes[f"{path}.not_before"] = Now(delay_ms)
        changes[f"{path}.blocked_on"] = _blocked(Reason.RETRY_BACKOFF, Now(delay_ms))
    if not failed.keeps_checkpoint:
        changes.update(cleared(instance, step, "checkpoint"))
    return changes


def directed(
    instance: WorkflowInstance, step: str, directive: Sleep | WaitForSignal | Yield
) -> Changes:
    """Checkpoint and wait in one write; the attempt is given back."""
    path = f"steps.{step}"
    status = StepStatus.PENDING if isinstance(directive, Yield) else StepStatus.WAITING
    changes = {
        **_home(instance, step, status, _directive_name(directive)),
        f"{path}.attempt": Add(-1),
        f"{path}.checkpoint": Json(directive.checkpoint),
        **cleared(instance, step, "error"),
    }
    match directive:
        case Yield():
            return changes
        case Sleep(delay):
            poll: Expression = Now(int(as_seconds(delay, what="delay") * 1000))
            wait: Changes = {"kind": Lit(WaitKind.TIMER.value)}
            reason = Reason.TIMER
        case WaitForSignal():
            after = directive.poll_after
            seconds = None if after is None else as_seconds(after, what="poll_after")
            poll = Lit(limits.FAR_FUTURE) if seconds is None else Now(int(seconds * 1000))
            wait = {
                "kind": Lit(WaitKind.SIGNAL.value),
                "signal_type": Lit(directive.signal_type),
                "wait_key": Lit(directive.wait_key),
                "generation": Lit(directive.generation),
            }
            reason = Reason.SIGNAL
        case _:
            assert_never(directive)
    never = isinstance(poll, Lit)
    wait |= {"step": Lit(step), "since": Now(), "poll_time": Lit(None) if never else poll}
    changes["waits"] = Push(Record(wait), keep=limits.PLAN_STEPS)
    changes[f"{path}.wait_count"] = Add(1)
    changes[f"{path}.not_before"] = poll
    changes[f"{path}.blocked_on"] = _blocked(reason, Lit(None) if never else poll)
    return changes


def worker_lost(
    instance: WorkflowInstance, step: str, *, on_failed: OnFailed, deaths: int
) -> Changes:
    """A step whose process died `deaths` times in a row is not entered again."""
    state = instance.steps[step]
    path = f"steps.{step}"
    status = StepStatus.FAILED if on_failed is OnFailed.STOP else StepStatus.SKIPPED
    message = f"its process died while this step ran; deaths in a row: {deaths}"
    changes = _ended(instance, step, status, "lost", "worker_lost", message)
    changes.update(spans.close_lost_attempt(step, state))
    changes[f"{path}.times.scheduling_ms"] = Add(Span((f"{path}.started_at", "interrupted_at")))
    changes[f"{path}.recoveries"] = Lit(state.recoveries)
    return changes


def error_record(code: str, message: str, step: str | None) -> Record:
    """Return an error as it is stored."""
    return Record({"code": Lit(code), "message": Lit(message), "step": Lit(step), "at": Now()})


def _home(instance: WorkflowInstance, step: str, status: StepStatus, outcome: str) -> Changes:
    state = instance.steps[step]
    path = f"steps.{step}"
    changes: Changes = {
        f"{path}.status": Lit(status.value),
        f"{path}.seq": Lit(state.seq + 1),
        **cleared(instance, step, "resume", "not_before", "blocked_on"),
        **spans.close_attempt(step, state, outcome),
    }
    if state.recoveries:
        changes[f"{path}.recoveries"] = Lit(0)
    return changes


def _ended(
    instance: WorkflowInstance, step: str, status: StepStatus, outcome: str, code: str, message: str
) -> Changes:
    path = f"steps.{step}"
    return {
        **_home(instance, step, status, outcome),
        f"{path}.error": error_record(code, message, step),
        f"{path}.finished_at": Now(),
    }


def _blocked(reason: Reason, until: Expression) -> Record:
    return Record({"reason": Lit(reason.value), "since": Now(), "until": until})


def _directive_name(directive: Sleep | WaitForSignal | Yield) -> str:
    match directive:
        case Sleep():
            return "slept"
        case WaitForSignal():
            return "waited"
        case Yield():
            return "yielded"
    assert_never(directive)
