"""Registers work: `start_or_resume`, the one idempotent entrance (design 1.4).

The request path, the recovery dispatcher and a user's retry all come through here. The unique
index on biz_key picks the winner of racing creations, the fencing_token decides about rounds.
Lanes and bells come after the instance is stored, best effort.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel import limits
from kernel.definition import Plan, Registry
from kernel.engine.hinting import HintWriter
from kernel.errors import InvalidValue, InvariantViolation, StoreUnavailable, UnknownWorkflow
from kernel.json_values import check_json
from kernel.model import Priority, WorkflowInstance
from kernel.protocol import starting
from kernel.protocol.starting import Start
from kernel.store import InstanceStore
from kernel.store.port import Stored

_MAX_RACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StartResult:
    """The answer of `start_or_resume`.

    `accepted` alone allows a publisher to confirm its intent; `activated` marks the one call that
    started an execution; `reason` is created, registered, replayed, stale_round, busy or closed.
    """

    instance: WorkflowInstance
    activated: bool
    accepted: bool
    reason: str

    @property
    def workflow_id(self) -> str:
        """The identity of the instance."""
        return self.instance.workflow_id


class Publisher:
    """Registers instances of the plans this process knows."""

    def __init__(self, store: InstanceStore, registry: Registry, hints: HintWriter) -> None:
        self._store = store
        self._registry = registry
        self._hints = hints

    def start_or_resume(
        self, plan: Plan, *, biz_key: str, value: object, fencing_token: int, priority: int
    ) -> StartResult:
        """Register a business round; every repetition gets the same answer.

        Raises:
            UnknownWorkflow: the plan is not registered here.
            InvalidValue: biz_key, fencing_token, priority or input cannot be kept.
            StoreUnavailable: MongoDB did not answer; repeating is safe.
        """
        if self._registry.plan(plan.type).fingerprint != plan.fingerprint:
            raise UnknownWorkflow(
                f"{plan.type!r} is registered here with other steps than {list(plan.steps)};"
                " publish the plan that is registered"
            )
        _check_identity(biz_key, fencing_token)
        lane = _check_priority(priority)
        value = plan.dump_input(value)
        check_json(value, limit_bytes=limits.INPUT_BYTES, what=f"input of {plan.type}")
        workflow_id = starting.workflow_id_of(biz_key)
        changes = starting.create_changes(
            plan, biz_key=biz_key, value=value, fencing_token=fencing_token, priority=lane
        )
        created = self._store.create(workflow_id, changes)
        if created is not None:
            return self._started(created, Start.CREATED)
        for _ in range(_MAX_RACES):
            stored = self._store.read(workflow_id)
            if stored is None:
                raise InvariantViolation(f"{workflow_id} exists and cannot be read")
            answer = self._resume(stored, plan, value, fencing_token, lane)
            if answer is not None:
                return answer
        raise StoreUnavailable(f"{workflow_id} changed {_MAX_RACES} times meanwhile; try again")

    def _resume(
        self, stored: Stored, plan: Plan, value: object, fencing_token: int, priority: Priority
    ) -> StartResult | None:
        """Answer for an existing instance; None when it changed under our hands."""
        instance = stored.instance
        start = starting.decide(instance, fencing_token)
        if start is Start.REPLAYED:
            commit = starting.replay(
                instance, value=value, fencing_token=fencing_token, priority=priority
            )
            if not self._store.commit(commit):
                return None
            note = ""
            if plan.fingerprint != instance.definition_fingerprint:
                note = (
                    f" (its steps are of definition {instance.definition_fingerprint[:12]},"
                    f" this plan is {plan.fingerprint[:12]})"
                )
            replayed = self._store.read(instance.workflow_id)
            assert replayed is not None, "instances are never deleted while they run"
            return self._started(replayed, start, note)
        if start is Start.REGISTERED and priority < instance.priority:
            self._raise_priority(stored, priority)
        return StartResult(
            instance=instance, activated=False, accepted=start.accepted, reason=start.value
        )

    def _started(self, stored: Stored, start: Start, note: str = "") -> StartResult:
        self._hints.place(stored.instance, stored.now)
        return StartResult(
            instance=stored.instance, activated=True, accepted=True, reason=start.value + note
        )

    def _raise_priority(self, stored: Stored, priority: Priority) -> None:
        """Move a live instance to a better lane; priority is only ever raised."""
        instance = stored.instance
        if self._store.commit(starting.raise_priority(instance, priority)):
            raised = instance.model_copy(update={"priority": priority})
            if instance.claim_token is None:
                self._hints.place(raised, stored.now)


def _check_identity(biz_key: object, fencing_token: object) -> None:
    if not isinstance(biz_key, str) or not biz_key:
        raise InvalidValue("give a non-empty string, e.g. 'order.sync:t1:42'", what="biz_key")
    check_json(biz_key, limit_bytes=limits.BIZ_KEY_BYTES, what="biz_key")
    is_int = isinstance(fencing_token, int) and not isinstance(fencing_token, bool)
    if not is_int or not 0 < fencing_token < 2**63:  # type: ignore[operator]
        raise InvalidValue("give the number of the business round, from 1", what="fencing_token")


def _check_priority(priority: object) -> Priority:
    try:
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise ValueError(priority)
        return Priority(priority)
    except ValueError:
        raise InvalidValue(
            f"{priority!r} is no lane; use Priority.REALTIME, ASYNC, DISTRIBUTION or RECOVERY",
            what="priority",
        ) from None
