"""The entrance itself: one round, or a page of them; every answer from one decision.

Guarantees that an instance is in its lane, or was to be, before its answer is given. Leaves to
others: what may be registered at all (`rounds`), and what a round does to an instance that exists
(`kernel.protocol.starting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kernel import limits
from kernel.definition import Plan, Registry
from kernel.engine.hinting import HintWriter
from kernel.engine.placing import place_due
from kernel.errors import (
    InvariantViolation,
    KernelError,
    StoreUnavailable,
    UnknownWorkflow,
    Unreadable,
)
from kernel.model import Priority
from kernel.protocol import starting
from kernel.protocol.starting import Start
from kernel.publish.rounds import Round, StartItem, StartResult, checked, checked_item
from kernel.store import GroupedInstances, InstanceStore
from kernel.store.port import Stored

_MAX_RACES: Final = 20
#: Instances read whole in one go, because each may be large.
_READ_TOGETHER: Final = 100


class Publisher:
    """Registers instances of the plans this process knows."""

    def __init__(
        self,
        store: InstanceStore,
        instances: GroupedInstances,
        registry: Registry,
        hints: HintWriter,
    ) -> None:
        self._store = store
        self._instances = instances
        self._registry = registry
        self._hints = hints

    def start_or_resume(
        self, plan: Plan, *, biz_key: str, value: object, fencing_token: int, priority: int
    ) -> StartResult:
        """Register a business round; every repetition gets the same answer.

        Raises:
            UnknownWorkflow: the plan is not registered here.
            InvalidValue: biz_key, fencing_token, priority or input cannot be kept.
            Unreadable: its instance exists, and holds what this version does not know.
            StoreUnavailable: MongoDB did not answer; repeating is safe.
        """
        self._check_plan(plan)
        round_ = checked(
            plan, StartItem(biz_key, value, fencing_token=fencing_token, priority=priority)
        )
        created = self._store.create(round_.workflow_id, round_.changes(plan))
        if created is not None:
            return self._started(created, Start.CREATED)
        return self._answer(plan, round_, None)

    def start_many(self, plan: Plan, items: Sequence[StartItem]) -> list[StartResult]:
        """Register a page of rounds; answers as `start_or_resume` would, in order.

        Raises:
            UnknownWorkflow: the plan is not registered here.
            InvalidValue: an item cannot be kept; the message names its index, nothing was written.
            Unreadable, InvariantViolation: what stands in an instance; all others are registered.
            StoreUnavailable: MongoDB did not answer; repeating is safe.
        """
        self._check_plan(plan)
        rounds = [checked_item(plan, number, item) for number, item in enumerate(items)]
        answers: list[StartResult] = []
        refused: list[KernelError] = []
        for begin in range(0, len(rounds), limits.PAGE_WRITES):
            page = rounds[begin : begin + limits.PAGE_WRITES]
            try:
                answers += self._start_page(plan, page, refused)
            except InvariantViolation as exc:  # the others of its page are stored
                refused.append(exc)
        if refused:
            raise refused[0]
        return answers

    def _start_page(
        self, plan: Plan, rounds: Sequence[Round], refused: list[KernelError]
    ) -> list[StartResult]:
        created = self._instances.create_all([each.changes(plan) for each in rounds])
        new = [None if one is None else (one.instance, one.now) for one in created]
        place_due(self._hints, filter(None, new))
        taken = [each for each, one in zip(rounds, created, strict=True) if one is None]
        existing: dict[str, Stored] = {}
        for begin in range(0, len(taken), _READ_TOGETHER):
            some = taken[begin : begin + _READ_TOGETHER]
            existing |= self._instances.read_all([each.workflow_id for each in some])
        answers: list[StartResult] = []
        for each, one in zip(rounds, new, strict=True):
            if one is None:
                # Once only: an earlier item of this page may have changed what was read.
                try:
                    answer = self._answer(plan, each, existing.pop(each.workflow_id, None))
                except (Unreadable, InvariantViolation) as exc:
                    refused.append(exc)
                else:
                    answers.append(answer)
            else:
                answers.append(StartResult.of(one[0], Start.CREATED))
        return answers

    def _check_plan(self, plan: Plan) -> None:
        if self._registry.plan(plan.type).fingerprint != plan.fingerprint:
            raise UnknownWorkflow(
                f"{plan.type!r} is registered here with other steps than {list(plan.steps)};"
                " publish the plan that is registered"
            )

    def _answer(self, plan: Plan, round_: Round, stored: Stored | None) -> StartResult:
        """Answer for an instance that exists, `stored` being how it was read, if it was."""
        for _ in range(_MAX_RACES):
            stored = stored or self._store.read(round_.workflow_id)
            if stored is None:
                raise InvariantViolation(f"{round_.workflow_id} exists and cannot be read")
            answer = self._resume(stored, plan, round_.value, round_.fencing_token, round_.priority)
            if answer is not None:
                return answer
            stored = None
        raise StoreUnavailable(
            f"{round_.workflow_id} changed {_MAX_RACES} times meanwhile; try again"
        )

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
        return StartResult.of(instance, start)

    def _started(self, stored: Stored, start: Start, note: str = "") -> StartResult:
        self._hints.place(stored.instance, stored.now)
        return StartResult.of(stored.instance, start, note)

    def _raise_priority(self, stored: Stored, priority: Priority) -> None:
        """Move a live instance to a better lane; priority is only ever raised."""
        instance = stored.instance
        if self._store.commit(starting.raise_priority(instance, priority)):
            raised = instance.model_copy(update={"priority": priority})
            if instance.claim_token is None:
                self._hints.place(raised, stored.now)
