"""`live.watch` on the worker's side. What the steps do: `jobs.activities.live`."""

from jobs.activities import live
from jobs.plans import WATCH
from jobs.workflows import policies
from kernel import Definition, Step


def watch_definition() -> Definition:
    """Bind the plan to its activities."""
    return Definition(
        WATCH,
        steps={
            "observe": Step(
                live.observe, timeout=policies.BUSINESS_TIMEOUT, retry=policies.PATIENT
            ),
            "publish": Step(
                live.publish, timeout=policies.BUSINESS_TIMEOUT, retry=policies.PATIENT
            ),
        },
        success_finalizer=live.watched,
        failure_finalizer=live.watch_failed,
    )
