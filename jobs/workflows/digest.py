"""`content.digest` on the worker's side. What the steps do: `jobs.activities.digest`.

Page and recording are worked on side by side in one wave, so `compose` begins when both are home.
"""

from jobs.activities import article, digest, endings
from jobs.activities.outside import MediaPorts
from jobs.plans import DIGEST
from jobs.resources import CONTENT_GENERATION, SPEECH_RECOGNITION, WEB_CRAWLER, tenant_work_of
from jobs.workflows import policies
from kernel import Definition, Step


def digest_definition(ports: MediaPorts) -> Definition:
    """Bind the plan to its activities and to the outside world they work with."""
    return Definition(
        DIGEST,
        steps={
            "fetch_page": Step(
                article.fetch_page,
                timeout=policies.FETCH_TIMEOUT,
                retry=policies.FETCH,
                traffic_resource=WEB_CRAWLER,
            ),
            "transcribe_audio": Step(
                digest.transcribe_audio,
                timeout=policies.TRANSCRIBE_TIMEOUT,
                retry=policies.TRANSCRIBE,
                traffic_resource=SPEECH_RECOGNITION,
            ),
            "compose": Step(
                digest.compose,
                timeout=policies.COMPOSE_TIMEOUT,
                retry=policies.COMPOSE,
                traffic_resource=CONTENT_GENERATION,
            ),
            "choose": Step(
                digest.choose, timeout=policies.BUSINESS_TIMEOUT, retry=policies.BUSINESS
            ),
            "finalize": Step(
                digest.finalize, timeout=policies.BUSINESS_TIMEOUT, retry=policies.BUSINESS
            ),
        },
        success_finalizer=endings.settle,
        failure_finalizer=endings.give_up,
        workflow_resources=tenant_work_of,
        ports=ports,
    )
