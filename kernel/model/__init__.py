"""The facts of one workflow as typed values (design 1.3).

Times are aware UTC datetimes with millisecond grain, spans are whole milliseconds. Models are
frozen: a change is a commit in the store, never an assignment here.
"""

from __future__ import annotations

from kernel.model.capacity import Holder, LimitChange, ResourceStatus, Waiter
from kernel.model.instance import FinalizerState, InstanceStatus, Priority, WorkflowInstance
from kernel.model.signal import Signal
from kernel.model.step import (
    Attempt,
    BlockedOn,
    Reason,
    Resume,
    StepError,
    StepState,
    StepStatus,
    Times,
)
from kernel.model.wait import Wait, WaitKind

__all__ = [
    "Attempt",
    "BlockedOn",
    "FinalizerState",
    "Holder",
    "InstanceStatus",
    "LimitChange",
    "Priority",
    "Reason",
    "ResourceStatus",
    "Resume",
    "Signal",
    "StepError",
    "StepState",
    "StepStatus",
    "Times",
    "Wait",
    "WaitKind",
    "Waiter",
    "WorkflowInstance",
]
