"""Jobs that wait for an event, and what is stored about their waiting."""

from jobs.models import ContentJob, LiveEvent
from jobs.services import content, live
from kernel import Kernel, StepState, WorkflowInstance, workflow_id_of
from kernel.testing import TimeShift, run_until_idle

MEDIA, DISTRIBUTION = ("media",), ("distribution",)
RECORDING = "https://example.org/talk.wav"


def announce(title: str = "A talk") -> LiveEvent:
    return live.schedule("acme", title=title)


def subscribe(event: LiveEvent) -> ContentJob:
    return content.submit_job(
        tenant="acme", kind="live", source_url="", options={"live_event": event.pk}
    )


def instance_of(kernel: Kernel, job: ContentJob) -> WorkflowInstance:
    job.refresh_from_db()
    found = kernel.find(biz_key=job.dispatch_biz_key or "")
    assert found is not None
    return found


def first_step(kernel: Kernel, job: ContentJob) -> StepState:
    return instance_of(kernel, job).steps["preprocess"]


def fan_out_of(kernel: Kernel, event: LiveEvent) -> WorkflowInstance:
    return kernel.get(workflow_id_of(f"live.fanout:acme:{event.pk}"))


def pass_time(kernel: Kernel, seconds: float, queues: tuple[str, ...]) -> None:
    TimeShift(kernel).advance(seconds=seconds)
    run_until_idle(kernel, queues)


def row(event: LiveEvent) -> LiveEvent:
    return LiveEvent.objects.get(pk=event.pk)
