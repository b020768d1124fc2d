"""`content.notify` on the worker's side: one step that goes on trying for some hours.

Guarantees: a receiver that is down for an afternoon still hears; one that refuses for good, or
whose address must not be contacted, ends it at once. Leaves to others: what the step does
(`jobs.activities.notify`).
"""

from jobs.activities import notify
from jobs.plans import NOTIFY
from kernel import Definition, RetryPolicy, Step

#: Seconds of one attempt; the sender's own limit is shorter.
ATTEMPT_TIMEOUT = 20
#: 5 s, 10 s, 20 s … one hour: fifteen attempts over five hours and a half.
ATTEMPTS = RetryPolicy(max_retry=14, backoff="exponential", initial=5, cap=3600)


def notify_definition(ports: notify.NotifyPorts) -> Definition:
    """Bind the plan to its activity and to whoever carries notifications."""
    return Definition(
        NOTIFY,
        steps={"deliver": Step(notify.deliver, timeout=ATTEMPT_TIMEOUT, retry=ATTEMPTS)},
        success_finalizer=notify.delivered,
        failure_finalizer=notify.given_up,
        ports=ports,
    )
