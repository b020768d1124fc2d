"""Instances as values, for the pure decisions: only what a test is about has to be said."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kernel import Plan, Priority, WorkflowInstance
from kernel.protocol import starting
from kernel.protocol.apply import Document, apply_changes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
EARLIER = NOW - timedelta(minutes=5)

CANCELED = {"status": "skipped", "error": {"code": "workflow_canceled", "message": "gone"}}


def document(
    steps: dict[str, Any], *, depends_on: dict[str, list[str]] | None = None, **fields: Any
) -> Document:
    """Return a claimed instance whose steps have these fields; a text is a status."""
    plan = Plan("test.pure", queue="work", steps=list(steps), depends_on=depends_on)
    changes = starting.create_changes(
        plan, biz_key="k", value=None, fencing_token=1, priority=Priority.ASYNC
    )
    made = apply_changes({}, changes, EARLIER)
    for name, given in steps.items():
        own = {"status": given} if isinstance(given, str) else given
        made["steps"][name] = made["steps"][name] | own
    return made | {"claim_token": "mine", "claim_owner": "here"} | fields


def instance(
    steps: dict[str, Any], *, depends_on: dict[str, list[str]] | None = None, **fields: Any
) -> WorkflowInstance:
    """Return `document` as a typed value."""
    return WorkflowInstance.model_validate(document(steps, depends_on=depends_on, **fields))


def waits(*steps: tuple[str, datetime | None]) -> list[dict[str, Any]]:
    """Return waits of steps with their poll times."""
    return [{"step": name, "kind": "timer", "poll_time": poll} for name, poll in steps]
