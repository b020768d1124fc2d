"""Activities that call the provider and say as whom."""

import os
import secrets
from typing import Any

from jobs.runtime import get_kernel
from kernel import ActivityContext, Definition, RetryPolicy, Step
from tests.capacity_proof.business import plans
from tests.capacity_proof.provider import ask

_RETRY = RetryPolicy(max_retry=3, backoff="fixed", initial=0.1)


def definitions() -> list[Definition]:
    """Build every workflow of this app."""
    calling = Step(call, timeout=300, retry=_RETRY, traffic_resource=_resources)
    plain = Step(call, timeout=300, retry=_RETRY)
    return [
        Definition(plans.CALLING, steps={"call": calling}, prepare_context=claim_name),
        Definition(plans.ALONE, steps={"call": calling}, prepare_context=claim_name),
        Definition(
            plans.HELD,
            steps={"first": plain, "second": plain},
            workflow_resources=_resources,
            prepare_context=claim_name,
        ),
        Definition(plans.FREE, steps={"note": Step(note)}),
    ]


def claim_name(_: ActivityContext) -> str:
    """Name a claim, once: random, since an activity sees nothing that tells claims apart."""
    return secrets.token_hex(4)


def call(ctx: ActivityContext) -> dict[str, Any]:
    """Call the provider once, in the name of this claim; nothing else takes time of its permit."""
    ask(
        os.environ[plans.PROVIDER],
        workflow=ctx.workflow_id,
        step=ctx.step,
        owner=f"{ctx.workflow_id}:{ctx.step}:{ctx.prepared}",
        group=ctx.input["group"],
        ms=ctx.input.get("ms"),
        gate=ctx.input.get("gate"),
        granted=_granted(ctx) if ctx.input.get("ask") else None,
    )
    return {"pid": os.getpid()}


def note(_: ActivityContext) -> dict[str, Any]:
    """Say who ran this."""
    return {"pid": os.getpid()}


def _granted(ctx: ActivityContext) -> float | None:
    """Say when this step's permit began, on the database's clock."""
    status = get_kernel().capacity.status(ctx.input["resources"][0])
    mine = [h for h in status.holders if (h.workflow_id, h.step) == (ctx.workflow_id, ctx.step)]
    return mine[0].since.timestamp() if mine else None


def _resources(value: Any) -> list[str]:
    named: list[str] = value["resources"]
    return named
