"""`content.article` on the worker's side: activities with their limits, and the reliable end.

Guarantees: permanent failures of the outside (`PortRefused`) end the round at once; temporary ones
are tried again with growing delays. Leaves to others: what the steps do (`jobs.activities`).
"""

from jobs.activities import article
from jobs.activities.outside import Ports
from jobs.plans import ARTICLE
from kernel import Definition, RetryPolicy, Step

#: Seconds of one call.
BUSINESS_TIMEOUT = 30
FETCH_TIMEOUT = 60
COMPOSE_TIMEOUT = 300

#: For steps that only touch the business database.
_BUSINESS = RetryPolicy(max_retry=4, backoff="exponential", initial=0.5, cap=30)
_FETCH = RetryPolicy(max_retry=4, backoff="exponential", initial=1, cap=60)
_COMPOSE = RetryPolicy(max_retry=5, backoff="exponential", initial=2, cap=120)


def article_definition(ports: Ports) -> Definition:
    """Bind the plan to its activities and to the outside world they work with."""
    return Definition(
        ARTICLE,
        steps={
            "preprocess": Step(article.preprocess, timeout=BUSINESS_TIMEOUT, retry=_BUSINESS),
            "fetch_page": Step(article.fetch_page, timeout=FETCH_TIMEOUT, retry=_FETCH),
            "compose": Step(article.compose, timeout=COMPOSE_TIMEOUT, retry=_COMPOSE),
            "finalize": Step(article.finalize, timeout=BUSINESS_TIMEOUT, retry=_BUSINESS),
        },
        success_finalizer=article.settle,
        failure_finalizer=article.give_up,
        ports=ports,
    )
