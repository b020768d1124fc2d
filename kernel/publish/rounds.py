"""Rounds to register: as they are given, as they are checked, and what they are answered.

Guarantees that a `Round` can be stored as it is. Leaves to others: storing it (`publisher`).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel import limits
from kernel.definition import Plan
from kernel.errors import InvalidValue
from kernel.json_values import check_json
from kernel.model import Priority, WorkflowInstance
from kernel.protocol import starting
from kernel.protocol.expressions import Changes
from kernel.protocol.starting import Start


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

    @classmethod
    def of(cls, instance: WorkflowInstance, start: Start, note: str = "") -> StartResult:
        """Return the answer that what was found means; `note` is added to its reason."""
        return cls(
            instance=instance,
            activated=start.activated,
            accepted=start.accepted,
            reason=start.value + note,
        )


@dataclass(frozen=True, slots=True)
class StartItem:
    """One round of a page for `start_many`: the arguments of `start_or_resume`."""

    biz_key: str
    input: object = None
    fencing_token: int = 1
    priority: Priority | int = Priority.ASYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that may be stored: everything about it has been checked."""

    workflow_id: str
    biz_key: str
    value: object
    fencing_token: int
    priority: Priority

    def changes(self, plan: Plan) -> Changes:
        """Return the fields of the instance it creates."""
        return starting.create_changes(
            plan,
            biz_key=self.biz_key,
            value=self.value,
            fencing_token=self.fencing_token,
            priority=self.priority,
        )


def checked_item(plan: Plan, number: int, item: StartItem) -> Round:
    """Return item `number` of a page as a round; its InvalidValue names the number."""
    if not isinstance(item, StartItem):
        raise InvalidValue("give StartItem(biz_key, input, …)", what=f"items[{number}]")
    try:
        return checked(plan, item)
    except InvalidValue as exc:
        raise exc.within(f"items[{number}]") from exc


def checked(plan: Plan, item: StartItem) -> Round:
    """Return a round that may be stored.

    Raises:
        InvalidValue: biz_key, fencing_token, priority or input cannot be kept.
    """
    _check_identity(item.biz_key, item.fencing_token)
    lane = _check_priority(item.priority)
    value = plan.dump_input(item.input)
    check_json(value, limit_bytes=limits.INPUT_BYTES, what=f"input of {plan.type}")
    return Round(
        workflow_id=starting.workflow_id_of(item.biz_key),
        biz_key=item.biz_key,
        value=value,
        fencing_token=item.fencing_token,
        priority=lane,
    )


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
