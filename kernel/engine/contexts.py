"""Builds what activity and finalizer code sees, from a claim and its definition."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any, Final

from kernel import limits
from kernel.context import ActivityCapacity, ActivityContext, Cancellation, FinalizerContext
from kernel.definition import Definition
from kernel.engine.claims import HeldClaim
from kernel.json_values import copied

log: Final = logging.getLogger("baton.activity")


def activity_context(
    held: HeldClaim,
    definition: Definition,
    step: str,
    *,
    ports: Any,
    cancelled: Cancellation,
    capacity: ActivityCapacity,
) -> ActivityContext:
    """Return the context of one call of a step that has begun."""
    instance = held.instance
    state = instance.steps[step]
    context = ActivityContext(
        workflow_id=instance.workflow_id,
        biz_key=instance.biz_key,
        fencing_token=instance.fencing_token,
        step=step,
        attempt=state.attempt,
        # Copies: what code does to them must not be seen by the next step, nor by this one's retry.
        input=definition.plan.load_input(copied(instance.input)),
        outputs=copied(instance.output),
        checkpoint=copied(state.checkpoint),
        resume=state.resume,
        deadline=time.monotonic() + definition.steps[step].timeout_seconds,
        cancelled=cancelled,
        ports=ports,
        capacity=capacity,
        log=logging.LoggerAdapter(
            log,
            {
                "workflow_id": instance.workflow_id,
                "step": step,
                "attempt": state.attempt,
                "claim": held.live.token[:8],
            },
        ),
    )
    if definition.prepare_context is None:
        return context
    return dataclasses.replace(context, prepared=_prepared(held, definition, context))


def _prepared(held: HeldClaim, definition: Definition, context: ActivityContext) -> Any:
    """Run `prepare_context` once per claim and keep what it returned."""
    assert definition.prepare_context is not None
    with held.lock:
        if not held.prepared:
            held.prepared.append(definition.prepare_context(context))
        return held.prepared[0]


def finalizer_context(
    held: HeldClaim, definition: Definition, *, ports: Any, cancelled: Cancellation
) -> FinalizerContext:
    """Return the context of one call of a finalizer that has begun."""
    instance = held.instance
    assert instance.finalizer is not None
    error = instance.error
    return FinalizerContext(
        workflow_id=instance.workflow_id,
        biz_key=instance.biz_key,
        fencing_token=instance.fencing_token,
        input=definition.plan.load_input(copied(instance.input)),
        outputs=copied(instance.output),
        error=error.model_dump(include={"step", "code", "message"}) if error else None,
        attempt=instance.finalizer.attempt,
        deadline=time.monotonic() + limits.FINALIZER_TIMEOUT_SECONDS,
        cancelled=cancelled,
        ports=ports,
    )
