"""Baton's kernel: durable execution that any worker can carry on (design 1 and 9).

MongoDB keeps the facts that may not be lost, Redis speeds up what can be rebuilt, a worker can be
replaced at any moment. The kernel knows no web framework and no task queue: a host connects a
`Kernel`, registers plans (to publish) and definitions (to run), and calls `drain` when woken,
`tick` every second and `reconcile` every 30 seconds.
"""

from __future__ import annotations

from kernel.capacity import UNCHANGED, Capacity
from kernel.config import KernelConfig
from kernel.context import ActivityContext, Cancellation, FinalizerContext
from kernel.definition import Definition, OnFailed, Plan, RetryPolicy, Step
from kernel.directives import Sleep, WaitForSignal, Yield
from kernel.errors import (
    DefinitionError,
    HintsUnavailable,
    InvalidValue,
    InvariantViolation,
    KernelError,
    NonRetryable,
    NotAReplicaSet,
    NotAvailable,
    NotFound,
    RevisionConflict,
    StepTimeout,
    StoreUnavailable,
    Unavailable,
    UnknownWorkflow,
    Unreadable,
    UsageError,
    ValueTooLarge,
    WorkflowCanceled,
)
from kernel.explaining import Explanation, Progress
from kernel.json_values import check_json
from kernel.keeper import ClaimSlots, Keeper
from kernel.model import (
    BlockedOn,
    Holder,
    InstanceStatus,
    LimitChange,
    Priority,
    Reason,
    ResourceStatus,
    Resume,
    Signal,
    StepState,
    StepStatus,
    Waiter,
    WorkflowInstance,
)
from kernel.protocol.starting import workflow_id_of
from kernel.publish import StartItem, StartResult
from kernel.reconcile.duties import Reconciled
from kernel.runtime import Kernel
from kernel.slot import WorkerSlot
from kernel.store import WorkerBeat
from kernel.verifying import Finding, Looked

__all__ = [
    "UNCHANGED",
    "ActivityContext",
    "BlockedOn",
    "Cancellation",
    "Capacity",
    "ClaimSlots",
    "Definition",
    "DefinitionError",
    "Explanation",
    "FinalizerContext",
    "Finding",
    "HintsUnavailable",
    "Holder",
    "InstanceStatus",
    "InvalidValue",
    "InvariantViolation",
    "Keeper",
    "Kernel",
    "KernelConfig",
    "KernelError",
    "LimitChange",
    "Looked",
    "NonRetryable",
    "NotAReplicaSet",
    "NotAvailable",
    "NotFound",
    "OnFailed",
    "Plan",
    "Priority",
    "Progress",
    "Reason",
    "Reconciled",
    "ResourceStatus",
    "Resume",
    "RetryPolicy",
    "RevisionConflict",
    "Signal",
    "Sleep",
    "StartItem",
    "StartResult",
    "Step",
    "StepState",
    "StepStatus",
    "StepTimeout",
    "StoreUnavailable",
    "Unavailable",
    "UnknownWorkflow",
    "Unreadable",
    "UsageError",
    "ValueTooLarge",
    "WaitForSignal",
    "Waiter",
    "WorkerBeat",
    "WorkerSlot",
    "WorkflowCanceled",
    "WorkflowInstance",
    "Yield",
    "check_json",
    "workflow_id_of",
]
