"""The soak's activities: each notes its entry first, then works, waits, fails or gives up.

Guarantees that a step's output names the round it was made in, so that a result of a stale round
would show. Nothing here is patient with faults: that is the kernel's work.
"""

import os
import threading
from typing import Any

from kernel import (
    ActivityContext,
    Definition,
    FinalizerContext,
    RetryPolicy,
    Sleep,
    Step,
    WaitForSignal,
    WorkflowCanceled,
    Yield,
    workflow_id_of,
)
from tests.chaos import counting
from tests.chaos.business import ledger, plans

PAGE = 5
#: Attempts a flaky step fails before it succeeds; a doomed one fails them all in round 1.
FAILS = 2
_RETRY = RetryPolicy(max_retry=3, backoff="fixed", initial=0.2)
_PATIENT = RetryPolicy(max_retry=100, backoff="fixed", initial=0.5)


def definitions() -> list[Definition]:
    """Build every definition of the soak."""
    activities = {
        "flaky": flaky, "nap": nap, "listen": listen, "ring": ring, "quit": give_up, "call": call,
    }  # fmt: skip
    found = []
    for plan in plans.ALL:
        steps = {
            name: Step(
                activities.get(name, work),
                # Ringing needs MongoDB, which may be away for long.
                retry=_PATIENT if name == "ring" else _RETRY,
                timeout=60,
                traffic_resource=plans.RESOURCE if name == "call" else None,
            )
            for name in plan.steps
        }
        found.append(
            Definition(plan, steps=steps, success_finalizer=finish, failure_finalizer=finish)
        )
    return found


def work(ctx: ActivityContext) -> dict[str, Any]:
    """Take a little while."""
    _enter(ctx)
    threading.Event().wait((ctx.input or {}).get("seconds", 0.05))
    return _result(ctx)


def flaky(ctx: ActivityContext) -> dict[str, Any]:
    """Fail at first; for ever in the first round of a doomed one."""
    _enter(ctx)
    if ctx.attempt <= FAILS or (ctx.input.get("doomed") and ctx.fencing_token == 1):
        raise RuntimeError("not this time")
    return _result(ctx)


def nap(ctx: ActivityContext) -> dict[str, Any] | Sleep:
    """Sleep once."""
    _enter(ctx)
    if ctx.resume is None:
        return Sleep(ctx.input["nap"], checkpoint={"slept": True})
    return _result(ctx)


def listen(ctx: ActivityContext) -> dict[str, Any] | WaitForSignal:
    """Wait for the event; look by itself in the end, because its bell may be lost."""
    _enter(ctx)
    if ctx.resume is None:
        return WaitForSignal(
            plans.EVENT, wait_key=ctx.input["event"], generation=ctx.fencing_token, poll_after=20
        )
    return _result(ctx)


def ring(ctx: ActivityContext) -> dict[str, Any] | Yield:
    """Ring at a page of listeners, then let others go first."""
    _enter(ctx)
    event, count = ctx.input["event"], ctx.input["listeners"]
    begin = ctx.checkpoint or 0
    for number in range(begin, min(begin + PAGE, count)):
        from jobs.runtime import get_kernel

        get_kernel().deliver_signal(
            workflow_id=workflow_id_of(plans.listener(event, number)),
            signal_type=plans.EVENT,
            wait_key=event,
            generation=1,
            signal_id=f"{event}:{number}",
        )
    return Yield(checkpoint=begin + PAGE) if begin + PAGE < count else _result(ctx)


def call(ctx: ActivityContext) -> dict[str, Any]:
    """Use what is limited."""
    _enter(ctx)
    who = {"workflow_id": ctx.workflow_id, "round": ctx.fencing_token, "attempt": ctx.attempt}
    with counting.calling(int(os.environ[counting.PORT]), **who):
        threading.Event().wait(0.3)
    return _result(ctx)


def give_up(ctx: ActivityContext) -> dict[str, Any]:
    """Cancel the workflow from inside."""
    _enter(ctx)
    raise WorkflowCanceled("it is not wanted any more")


def finish(ctx: FinalizerContext) -> None:
    """Note the end; a finalizer may run again, so the judge counts rounds and not lines."""
    ledger.write(
        "end", workflow_id=ctx.workflow_id, round=ctx.fencing_token, failed=ctx.error is not None
    )


def _enter(ctx: ActivityContext) -> None:
    ledger.write(
        "enter",
        workflow_id=ctx.workflow_id,
        biz_key=ctx.biz_key,
        step=ctx.step,
        round=ctx.fencing_token,
        attempt=ctx.attempt,
        resumed=ctx.resume is not None or ctx.checkpoint is not None,
    )


def _result(ctx: ActivityContext) -> dict[str, Any]:
    return {"round": ctx.fencing_token, "attempt": ctx.attempt}
