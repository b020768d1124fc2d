"""Why a workflow does not move, in one sentence made of stored facts (design 6.1).

Guarantees that nothing is guessed: what is not stored, or derived from beats, is said to be
unknown. Leaves to others: storing the reason with the transition that blocks (`kernel.protocol`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kernel import limits
from kernel.model import BlockedOn, InstanceStatus, Reason, StepStatus, WorkflowInstance
from kernel.protocol import readiness
from kernel.protocol.resources import ResourceState
from kernel.store import WorkerBeat

_WAITED_LONG = timedelta(seconds=5)
_STALLED_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Whether work goes on as a whole, from stored facts on the database's clock.

    `oldest_due` is since when the longest-waiting instance could have been claimed, `last_claim`
    when some worker was last seen to take one (to about 5 s); None: nothing waits, nobody did.
    """

    now: datetime
    oldest_due: datetime | None
    last_claim: datetime | None
    workers: int

    @property
    def is_stalled(self) -> bool:
        """Something has waited for a minute in which nobody took anything: no mere backlog."""
        since = self.now - _STALLED_AFTER
        waits = self.oldest_due is not None and self.oldest_due < since
        return waits and (self.last_claim is None or self.last_claim < since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The binding reason, when it began, when it ends by itself, and the sentence for people.

    `reason` is None while the workflow moves or has ended. Waiting for a permit, `position` is its
    place in the line (from 1) and `estimate` the seconds until its turn, None where unknown.
    """

    workflow_id: str
    status: InstanceStatus
    reason: Reason | None
    step: str | None
    since: datetime | None
    until: datetime | None
    sentence: str
    position: int | None = None
    estimate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an instance stands in the line of the resource it waits for."""

    resource: ResourceState
    position: int


def explain(
    instance: WorkflowInstance,
    now: datetime,
    workers: Sequence[WorkerBeat],
    place: Place | None = None,
) -> Explanation:
    """Explain an instance as read at `now`; what is not stored is said to be unknown.

    `workers` are those heard of lately; `place` is its own where it waits for a permit.
    """
    if instance.status.is_terminal:
        return _say(instance, _ended(instance))
    if instance.claim_token is not None and instance.claimable_time > now:
        return _say(instance, _held(instance, now), step=_running_step(instance))
    blocked = instance.blocked_on
    if blocked is not None and instance.claimable_time > now:
        if blocked.reason.is_traffic and place is not None:
            return _in_line(instance, blocked, now, place)
        return _blocked(instance, blocked, now)
    return _due(instance, now, workers)


def _ended(instance: WorkflowInstance) -> str:
    error = instance.error
    if instance.status is InstanceStatus.COMPLETED or error is None:
        return f"{instance.status.value}: nothing is left to do"
    place = f" at step {error.step}" if error.step else ""
    return f"{instance.status.value}{place}: {error.code}: {error.message}"


def _held(instance: WorkflowInstance, now: datetime) -> str:
    step = _running_step(instance)
    doing = f"runs step {step}" if step else "is being advanced"
    lease = _span(instance.claimable_time - now)
    return f"{doing} on {instance.claim_owner or 'unknown'}; its lease is good for {lease}"


def _running_step(instance: WorkflowInstance) -> str | None:
    running = (n for n, s in instance.steps.items() if s.status is StepStatus.RUNNING)
    return next(running, None)


def _blocked(instance: WorkflowInstance, blocked: BlockedOn, now: datetime) -> Explanation:
    waited = f" for {_span(now - blocked.since)}" if blocked.since else ""
    at = f" at step {blocked.step}" if blocked.step else ""
    if blocked.until is None or blocked.until >= limits.FAR_FUTURE:
        end = "wakes by signal only"
    else:
        # The poll of a signal wait: its step looks, and may find that it has to wait on.
        does = "looks again" if blocked.reason is Reason.SIGNAL else "goes on"
        end = f"{does} in {_span(blocked.until - now)}"
    detail = f" ({blocked.detail})" if blocked.detail else ""
    names = f" {', '.join(blocked.resources)}" if blocked.resources else ""
    sentence = f"waiting{waited}{at} · {blocked.reason.value}{names}{detail} · {end}"
    return _say(
        instance,
        sentence,
        reason=blocked.reason,
        step=blocked.step,
        since=blocked.since,
        until=blocked.until,
    )


def _in_line(
    instance: WorkflowInstance, blocked: BlockedOn, now: datetime, place: Place
) -> Explanation:
    """A permit is handed on: what `until` says is only when it looks by itself.

    Nobody in the line is written to when a resource is paused or resumed, so which of both it waits
    for is told by the resource.
    """
    state = place.resource
    reason = Reason.PAUSED if state.paused else Reason.PERMIT
    waited = f" for {_span(now - blocked.since)}" if blocked.since else ""
    at = f" at step {blocked.step}" if blocked.step else ""
    estimate = state.wait_seconds(place.position)
    limit = "unlimited" if state.max_concurrency is None else str(state.max_concurrency)
    facts = [f"number {place.position} in line", f"{len(state.holders)} of {limit} in use"]
    if state.max_starts_per_second is not None:
        starts = "start" if state.max_starts_per_second == 1 else "starts"
        facts.append(f"{state.max_starts_per_second:g} {starts} a second")
    if state.paused:
        facts.append("paused until somebody resumes it")
    elif not state.is_open and state.cooldown_until is not None:
        facts.append(f"cooling down for {_span(state.cooldown_until - now)}")
    elif estimate:
        facts.append(f"about {_span(timedelta(seconds=estimate))} to go")
    sentence = f"waiting{waited}{at} · {reason.value} {state.name} · {', '.join(facts)}"
    told = _say(
        instance,
        sentence,
        reason=reason,
        step=blocked.step,
        since=blocked.since,
        until=blocked.until,
    )
    return replace(told, position=place.position, estimate=estimate)


def _due(instance: WorkflowInstance, now: datetime, workers: Sequence[WorkerBeat]) -> Explanation:
    since = instance.claimable_time
    ready = readiness.ready_steps(instance, now)
    step = ready[0] if ready else None
    reason = Reason.LANE_BACKLOG
    if instance.claim_token is not None:
        sentence = (
            f"its worker {instance.claim_owner or 'unknown'} went silent {_span(now - since)} ago;"
            " the next worker takes over"
        )
    elif now - since < _WAITED_LONG:
        sentence = f"due now, queued on {instance.queue} (P{int(instance.priority)})"
    elif not any(_serves(worker, instance) for worker in workers):
        reason = Reason.NO_WORKER
        sentence = (
            f"due for {_span(now - since)} on {instance.queue} · no_worker: no worker that serves"
            f" {instance.queue} and knows this definition"
            f" ({instance.definition_fingerprint[:12]}) was heard of lately"
        )
    else:
        sentence = (
            f"due for {_span(now - since)} on {instance.queue} (P{int(instance.priority)})"
            " · lane_backlog: no worker of this queue has taken it yet"
        )
    return _say(instance, sentence, reason=reason, step=step, since=since)


def _serves(worker: WorkerBeat, instance: WorkflowInstance) -> bool:
    return (
        instance.queue in worker.queues
        and not worker.stopping
        and any(served.fingerprint == instance.definition_fingerprint for served in worker.served)
    )


def _say(
    instance: WorkflowInstance,
    sentence: str,
    *,
    reason: Reason | None = None,
    step: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Explanation:
    return Explanation(
        workflow_id=instance.workflow_id,
        status=instance.status,
        reason=reason,
        step=step,
        since=since,
        until=until,
        sentence=sentence,
    )


def _span(span: timedelta) -> str:
    seconds = max(0.0, span.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"
