"""`content.audio` on the worker's side. What the steps do: `jobs.activities.audio`."""

from jobs.activities import audio, endings
from jobs.activities.outside import MediaPorts
from jobs.plans import AUDIO
from jobs.resources import CONTENT_GENERATION, SPEECH_RECOGNITION, tenant_work_of
from jobs.workflows import policies
from kernel import Definition, Step


def audio_definition(ports: MediaPorts) -> Definition:
    """Bind the plan to its activities and to the outside world they work with."""
    return Definition(
        AUDIO,
        steps={
            "preprocess": Step(
                audio.preprocess, timeout=policies.RECORDING_TIMEOUT, retry=policies.FETCH
            ),
            "transcribe_audio": Step(
                audio.transcribe_audio,
                timeout=policies.TRANSCRIBE_TIMEOUT,
                retry=policies.TRANSCRIBE,
                traffic_resource=SPEECH_RECOGNITION,
            ),
            "compose": Step(
                audio.compose,
                timeout=policies.COMPOSE_TIMEOUT,
                retry=policies.COMPOSE,
                traffic_resource=CONTENT_GENERATION,
            ),
            "finalize": Step(
                endings.finalize, timeout=policies.BUSINESS_TIMEOUT, retry=policies.BUSINESS
            ),
        },
        success_finalizer=endings.settle,
        failure_finalizer=endings.give_up,
        workflow_resources=tenant_work_of,
        ports=ports,
    )
