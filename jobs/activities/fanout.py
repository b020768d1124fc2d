"""The step of `live.fanout`: ring at every job that waits for an event, a page at a time.

```
page after the cursor ─▶ a signal each, `<event>:<job>:<round>` ─▶ Yield(cursor) ─▶ … ─▶ empty
                                └ the store is away: Sleep, the same page again
```

Guarantees: whoever waits is rung at; a page that is rung twice wakes nobody twice, because the ids
are stable. Memory is one page, whatever the number of subscribers, and a page costs a few commands.
Leaves to others: what a woken job does.
"""

from typing import Any

from jobs.plans import WatchInput
from jobs.services import live
from kernel import ActivityContext, Sleep, Unavailable, Yield

#: Jobs rung at in one call.
PAGE = 100
_DELAY_MAX = 30.0


def notify(ctx: ActivityContext) -> dict[str, Any] | Yield | Sleep:
    """Ring at the next page of subscribers."""
    request = ctx.input
    assert isinstance(request, WatchInput), "the plan names its input model"
    state = ctx.checkpoint or {"after": 0, "rung": 0, "failures": 0}
    page = live.subscribers_after(request.event_id, state["after"], limit=PAGE)
    if not page:
        return {"rung": state["rung"]}
    try:
        ctx.raise_if_cancelled()
        live.ring_subscribers(request.event_id, page)
    except Unavailable as error:
        # An exception would clear the checkpoint and begin with the first page again.
        failures = state["failures"] + 1
        ctx.log.warning("page after %s is rung again: %s", state["after"], error)
        delay = min(float(2 ** min(failures, 10)), _DELAY_MAX)
        return Sleep(delay, checkpoint={**state, "failures": failures})
    return Yield(
        checkpoint={"after": page[-1].position, "rung": state["rung"] + len(page), "failures": 0}
    )
