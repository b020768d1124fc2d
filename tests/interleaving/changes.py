"""Judges one change of an instance by what it was before and who wrote it (design 1.4, 1.6).

Pure: two readings and a writer in, sentences out; an empty list means that nothing is wrong.
Guarantees that it names the invariant that was broken (I4: by somebody who may not, I5: a completed
step touched, I6: another round's result, I7: a wait counted). Leaves what must hold of one reading
to `kernel.verifying`.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from kernel import InstanceStatus, StepStatus, WorkflowInstance
from kernel.model import StepState

S = InstanceStatus
_NEXT = {
    S.RUNNING: {S.RUNNING, S.WAITING, S.FAILING, S.COMPLETED, S.CANCELED},
    S.WAITING: {S.WAITING, S.RUNNING, S.CANCELED},
    S.FAILING: {S.FAILING, S.FAILED},
    S.FAILED: {S.FAILED, S.RUNNING},
    S.COMPLETED: {S.COMPLETED},
    S.CANCELED: {S.CANCELED},
}
#: What may change without a change of state: a lease is renewed, a lane or a time is improved.
_NO_STATE = {"claimable_time", "priority"}


class Watch:
    """Follows one instance from reading to reading, and who owns which token."""

    def __init__(self) -> None:
        self.last: WorkflowInstance | None = None
        self.owners: dict[str, str] = {}
        self.begins: Counter[str] = Counter()
        self.wakes: Counter[tuple[str, str]] = Counter()

    def see(self, now: WorkflowInstance | None, writer: str) -> list[str]:
        """Take in the instance after a command of `writer`; return what is wrong with it."""
        before, self.last = self.last, now
        if now is None or before == now:
            return [] if now is not None or before is None else ["I2 the instance vanished"]
        if before is None:
            return list(_of_creation(now))
        self._count(before, now)
        found = [*of_change(before, now), *self._of_writer(before, now, writer)]
        if now.claim_token is not None and now.claim_token != before.claim_token:
            self.owners[now.claim_token] = writer
        return [f"{writer}: {sentence}" for sentence in found]

    def lives(self, token: str) -> bool:
        """Tell whether this token is that of a claim in force."""
        now = self.last
        is_held = now is not None and now.claim_token == token and not now.status.is_terminal
        return is_held and now is not None and now.claimable_time > datetime.now(UTC)

    def skip(self, now: WorkflowInstance | None) -> None:
        """Take in a reading without judging it: time has passed."""
        self.last = now

    def _count(self, before: WorkflowInstance, now: WorkflowInstance) -> None:
        for name, step in now.steps.items():
            was = before.steps[name]
            if step.status is StepStatus.RUNNING and step.seq != was.seq:
                self.begins[name] += 1
            for signal_id in set(step.woken_by) - set(was.woken_by):
                self.wakes[name, signal_id] += 1

    def _of_writer(
        self, before: WorkflowInstance, now: WorkflowInstance, writer: str
    ) -> Iterator[str]:
        changed = _changed(before, now)
        token = before.claim_token
        if token is None or changed <= _NO_STATE:
            return
        if now.claim_token not in (None, token):
            if before.claimable_time > datetime.now(UTC):
                yield "I4 took a claim whose lease is not over"
        elif self.owners.get(token) == writer or _is_supersede(now):
            return
        elif not _is_freed(before, now):
            yield f"I4 changed {sorted(changed)} under the claim of {self.owners.get(token)}"


def of_change(before: WorkflowInstance, now: WorkflowInstance) -> Iterator[str]:
    """Yield what no writer may do."""
    changed = _changed(before, now)
    if changed <= {"claimable_time", "steps"} and _is_handed_on(before, now):
        return
    yield from _of_state(before, now, changed)
    replayed = now.fencing_token != before.fencing_token
    if replayed:
        yield from _of_replay(before, now)
    for name, step in now.steps.items():
        was = before.steps[name]
        yield from _of_step(name, was, step)
        yield from _of_counts(name, was, step, replayed=replayed)
        yield from _of_putting_off(name, was, step)
        named = any(wait.step == name for wait in now.waits)
        if step.status is StepStatus.WAITING and not named and now.status is not S.CANCELED:
            yield f"{name} waits and no wait names it"
    for name, value in before.output.items():
        if now.output.get(name, ...) != value:
            yield f"I5 the output of {name} changed"


def _of_state(before: WorkflowInstance, now: WorkflowInstance, changed: set[str]) -> Iterator[str]:
    if changed & {"workflow_id", "biz_key", "type", "plan", "created_at"}:
        yield f"I2 changed {sorted(changed)}"
    if now.status not in _NEXT[before.status]:
        yield f"I6 {before.status} became {now.status}"
    if before.status in (S.COMPLETED, S.CANCELED) and changed:
        yield f"I6 is {before.status} and {sorted(changed)} changed"
    if before.status is S.FAILED and changed - _NO_STATE and now.status is S.FAILED:
        yield f"I6 is failed and {sorted(changed)} changed"
    if changed - _NO_STATE and now.revision != before.revision + 1:
        yield f"revision went from {before.revision} to {now.revision} with {sorted(changed)}"
    if now.priority > before.priority:
        yield "the priority was lowered"


def _of_creation(now: WorkflowInstance) -> Iterator[str]:
    if now.status is not S.RUNNING or now.claim_token or now.revision != 1:
        yield f"was created {now.status} at revision {now.revision}"


def _of_replay(before: WorkflowInstance, now: WorkflowInstance) -> Iterator[str]:
    if now.fencing_token < before.fencing_token:
        yield f"I6 round {before.fencing_token} became {now.fencing_token}"
    if (before.status, now.status) != (S.FAILED, S.RUNNING):
        yield f"I6 round {now.fencing_token} began while {before.status}"
    if now.claim_token or now.finalizer or now.error or now.waits or now.finished_at:
        yield "I6 a new round began with something of the old one"


def _of_step(name: str, was: StepState, step: StepState) -> Iterator[str]:
    if was.is_done and step != was:
        yield f"I5 {name} was {was.status} and changed"
    if step.seq < was.seq or step.seq > was.seq + 2:
        yield f"the seq of {name} went from {was.seq} to {step.seq}"
    if step.status is not was.status and step.seq == was.seq:
        yield f"{name} went from {was.status} to {step.status} and its seq did not move"
    if was.status is StepStatus.WAITING and step.status is StepStatus.WAITING and step != was:
        yield f"{name} waits otherwise without having run"
    if len(set(step.woken_by)) < len(step.woken_by):
        yield f"one signal woke {name} twice"


def _of_counts(name: str, was: StepState, step: StepState, *, replayed: bool) -> Iterator[str]:
    if step.attempt > was.attempt + 1 or (step.attempt > was.attempt and not _begins(was, step)):
        yield f"I7 {name} counts an attempt it did not begin"
    if step.attempt < was.attempt - 1 and not replayed:
        yield f"I7 the attempts of {name} fell from {was.attempt} to {step.attempt}"
    if step.failures > was.failures and (step.error is None or step.status is StepStatus.WAITING):
        yield f"I7 {name} counts a failure without an error"
    if step.recoveries > was.recoveries and was.status is not StepStatus.RUNNING:
        yield f"{name} counts a death while {was.status}"


def _of_putting_off(name: str, was: StepState, step: StepState) -> Iterator[str]:
    """Waiting for a permit is no attempt and no failure."""
    blocked = step.blocked_on
    if blocked is None or not blocked.reason.is_traffic or blocked == was.blocked_on:
        return
    if step.status is not StepStatus.PENDING:
        yield f"I7 {name} waits for a permit and is {step.status}"
    for counted in ("attempt", "failures", "error"):
        if getattr(step, counted) != getattr(was, counted):
            yield f"I7 waiting for a permit changed the {counted} of {name}"


def _begins(was: StepState, step: StepState) -> bool:
    return step.status is StepStatus.RUNNING and step.seq == was.seq + 1


def _changed(before: WorkflowInstance, now: WorkflowInstance) -> set[str]:
    return {name for name in type(now).model_fields if getattr(before, name) != getattr(now, name)}


def _is_handed_on(before: WorkflowInstance, now: WorkflowInstance) -> bool:
    """One that waits for a permit was made due: nothing but that, and nobody holds it."""
    in_line = before.blocked_on is not None and before.blocked_on.reason.is_traffic
    if not in_line or before.claim_token is not None or before.status is not S.RUNNING:
        return False
    waiting = {
        n for n, s in before.steps.items() if s.blocked_on and s.blocked_on.reason.is_traffic
    }
    moved = {n for n, s in now.steps.items() if s != before.steps[n]}
    due = {"not_before": None}
    same = all(
        now.steps[n].model_copy(update=due) == before.steps[n].model_copy(update=due) for n in moved
    )
    return moved <= waiting and same


def _is_supersede(now: WorkflowInstance) -> bool:
    return now.status is S.CANCELED and now.error is not None and now.error.code == "superseded"


def _is_freed(before: WorkflowInstance, now: WorkflowInstance) -> bool:
    """A dead holder's claim given back: no step moved but from running to pending."""
    same = before.status is now.status and before.output == now.output
    moved = [n for n in now.steps if now.steps[n].status is not before.steps[n].status]
    to_pending = all(now.steps[n].status is StepStatus.PENDING for n in moved)
    return now.claim_token is None and same and before.waits == now.waits and to_pending
