"""What a workflow consists of: the publisher's plan and the worker's definition (design 1.7, 9).

A `Plan` is the stable protocol: type, queue, step names and dependencies. A `Definition` adds the
code: activities, timeouts, retries, finalizers. Publishers import plans only; workers register
definitions. Both carry the same fingerprint, which decides whether a stored instance may be run.
Everything is checked when it is written, not when it runs.
"""

from __future__ import annotations

from kernel.definition.definition import Definition
from kernel.definition.fingerprint import fingerprint
from kernel.definition.plan import Plan
from kernel.definition.registry import Registry
from kernel.definition.retry import RetryPolicy
from kernel.definition.step import Activity, OnFailed, Step

__all__ = [
    "Activity",
    "Definition",
    "OnFailed",
    "Plan",
    "Registry",
    "RetryPolicy",
    "Step",
    "fingerprint",
]
