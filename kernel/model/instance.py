"""The instance: how far execution got and who may advance it (design 1.3)."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from pydantic import Field

from kernel.model.step import BlockedOn, Fact, StepError, StepState
from kernel.model.wait import Wait


class Priority(IntEnum):
    """The lane of an instance; only ever raised, that is, its number lowered (design 2.1)."""

    REALTIME = 0
    ASYNC = 1
    DISTRIBUTION = 2
    RECOVERY = 3


class InstanceStatus(StrEnum):
    """Where an instance is; the last three are terminal."""

    RUNNING = "running"
    WAITING = "waiting"
    FAILING = "failing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        """Nothing advances it any more in this round."""
        return self in (InstanceStatus.COMPLETED, InstanceStatus.FAILED, InstanceStatus.CANCELED)


class FinalizerState(Fact):
    """The record of a finalizer, begun in the write before it runs.

    `started_at` is set while an attempt is in progress; found set at claim time, that attempt was
    interrupted.
    """

    kind: str
    attempt: int = 0
    recoveries: int = 0
    not_before: datetime | None = None
    error: StepError | None = None
    started_at: datetime | None = None


class WorkflowInstance(Fact):
    """Everything stored about one workflow instance.

    `queued_since` is since when it has waited for permits of the workflow itself; gone once a step
    begins.
    """

    workflow_id: str
    type: str
    queue: str
    biz_key: str
    fencing_token: int
    status: InstanceStatus
    priority: Priority
    definition_fingerprint: str
    input: Any = None
    plan: tuple[str, ...]
    steps: dict[str, StepState]
    output: dict[str, Any] = Field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    claimable_time: datetime
    claim_token: str | None = None
    claim_owner: str | None = None
    interrupted_at: datetime | None = None
    finalizer: FinalizerState | None = None
    retry_count: int = 0
    revision: int = 0
    error: StepError | None = None
    blocked_on: BlockedOn | None = None
    queued_since: datetime | None = None
    trace: dict[str, str] | None = None
    created_at: datetime
    round_started_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
