"""What a step does when the other side asks to be left alone: a 429, or a `Retry-After`.

```
provider (speech, summaries)   everybody's resource is closed for that long (`ctx.capacity`), and
                               the step yields: without a permit it waits in line, for `permit`
site (page, recording)         this step alone sleeps: one site of many must not be able to stop
                               the crawling of all tenants, so `web_crawler` stays open
```

A rest is a directive, so it takes none of the step's attempts: who is told to wait has not failed.
The number of rests is in the checkpoint; after `RESTS_MAX` in a row the failure is raised after
all, one attempt is gone, and the step's retry policy decides. A cooldown that could not be stored
(MongoDB away) becomes a sleep of this step.

Guarantees: no rest is longer than `REST_SECONDS_MAX`, whatever the other side asks for; one that
asks without a time is given more of it each time. Leaves to others: reading the answer
(`jobs.ports`), closing the resource (`kernel.capacity`).
"""

from typing import Any

from jobs.ports import FailedForNow
from kernel import ActivityContext, KernelError, Sleep, Yield

#: First rest where no time was named, and the longest there is, seconds.
REST_SECONDS_FIRST = 5.0
REST_SECONDS_MAX = 300.0
#: Rests in a row that cost no attempt.
RESTS_MAX = 8

_RESTS = "rests"


def provider_rests(ctx: ActivityContext, resource: str, failure: FailedForNow) -> Yield | Sleep:
    """Close the provider's resource for as long as it asks, and let the step wait for its permit.

    Raises:
        FailedForNow: it is another failure, or the step has rested often enough.
    """
    seconds, checkpoint = _rest(ctx, failure)
    if not cool_down(ctx, resource, seconds):
        return Sleep(seconds, checkpoint=checkpoint)
    return Yield(checkpoint=checkpoint)


def site_rests(ctx: ActivityContext, failure: FailedForNow) -> Sleep:
    """Let this step alone sleep for as long as the site asks.

    Raises:
        FailedForNow: it is another failure, or the step has rested often enough.
    """
    seconds, checkpoint = _rest(ctx, failure)
    ctx.log.warning("asked to wait; this step sleeps for %g s: %s", seconds, failure)
    return Sleep(seconds, checkpoint=checkpoint)


def cool_down(ctx: ActivityContext, resource: str, seconds: float) -> bool:
    """Close a resource for everybody, bounded; False where that could not be stored."""
    bounded = min(seconds, REST_SECONDS_MAX)
    try:
        ctx.capacity.cooldown(resource, bounded)
    except KernelError as error:
        ctx.log.warning("%s could not be closed for %g s: %s", resource, bounded, error)
        return False
    ctx.log.warning("%s is closed for %g s, as its provider asks", resource, bounded)
    return True


def is_asked(failure: FailedForNow) -> bool:
    """Tell whether the other side answered that it wants to be left alone."""
    return failure.code == "rate_limited" or failure.retry_after is not None


def has_rested(checkpoint: Any) -> bool:
    """Tell whether a checkpoint counts rests, rather than being the step's own."""
    return isinstance(checkpoint, dict) and set(checkpoint) == {_RESTS}


def _rest(ctx: ActivityContext, failure: FailedForNow) -> tuple[float, dict[str, int]]:
    rests = ctx.checkpoint[_RESTS] if has_rested(ctx.checkpoint) else 0
    if not is_asked(failure) or rests >= RESTS_MAX:
        raise failure
    wanted = failure.retry_after or REST_SECONDS_FIRST * 2.0**rests
    return min(wanted, REST_SECONDS_MAX), {_RESTS: rests + 1}
