"""`content.article` on the worker's side: activities with their limits, and the reliable end.

Guarantees: permanent failures of the outside (`PortRefused`) end the round at once; temporary ones
are tried again with growing delays. Leaves to others: what the steps do (`jobs.activities`).
"""

from jobs.activities import article
from jobs.activities.outside import Ports
from jobs.plans import ARTICLE
from jobs.resources import CONTENT_GENERATION, WEB_CRAWLER, tenant_work_of
from jobs.workflows import policies
from kernel import Definition, Step


def article_definition(ports: Ports) -> Definition:
    """Bind the plan to its activities and to the outside world they work with."""
    return Definition(
        ARTICLE,
        steps={
            "preprocess": Step(
                article.preprocess, timeout=policies.BUSINESS_TIMEOUT, retry=policies.BUSINESS
            ),
            "fetch_page": Step(
                article.fetch_page,
                timeout=policies.FETCH_TIMEOUT,
                retry=policies.FETCH,
                traffic_resource=WEB_CRAWLER,
            ),
            "compose": Step(
                article.compose,
                timeout=policies.COMPOSE_TIMEOUT,
                retry=policies.COMPOSE,
                traffic_resource=CONTENT_GENERATION,
            ),
            "finalize": Step(
                article.finalize, timeout=policies.BUSINESS_TIMEOUT, retry=policies.BUSINESS
            ),
        },
        success_finalizer=article.settle,
        failure_finalizer=article.give_up,
        workflow_resources=tenant_work_of,
        ports=ports,
    )
