"""`live.fanout` on the worker's side. What the step does: `jobs.activities.fanout`."""

from jobs.activities import fanout
from jobs.plans import FANOUT
from jobs.workflows import policies
from kernel import Definition, Step


def fanout_definition() -> Definition:
    """Bind the plan to its activity."""
    return Definition(
        FANOUT,
        steps={
            "notify": Step(fanout.notify, timeout=policies.FANOUT_TIMEOUT, retry=policies.PATIENT)
        },
    )
