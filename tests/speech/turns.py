"""Bring a job to its end turn by turn: time passes for the kernel, the service works for real."""

from typing import Any

from jobs.models import ContentJob
from jobs.services import content
from kernel import Kernel, WorkflowInstance
from kernel.testing import TimeShift
from tests.kit.waiting import eventually

MEDIA = ("media",)


def submit_audio(url: str, **fields: Any) -> ContentJob:
    return content.submit_job(tenant="acme", kind="audio", source_url=url, **fields)


def instance_of(kernel: Kernel, job: ContentJob) -> WorkflowInstance:
    found = kernel.find(biz_key=job.dispatch_key())
    assert found is not None
    return found


def turn(kernel: Kernel, seconds: float = 0.0) -> None:
    """Let time pass, and run what is due."""
    TimeShift(kernel).advance(seconds=seconds)
    kernel.tick()
    kernel.drain(MEDIA)


def checkpoint_of(kernel: Kernel, job: ContentJob) -> dict[str, Any]:
    """Return what `transcribe_audio` follows its task by; it must be waiting."""
    state = instance_of(kernel, job).steps["transcribe_audio"]
    assert state.status == "waiting", state
    assert isinstance(state.checkpoint, dict)
    return state.checkpoint


def ended(kernel: Kernel, job: ContentJob, *, timeout: float = 30.0) -> WorkflowInstance:
    """Take turns until the workflow has ended; the recogniser needs real time."""

    def look() -> WorkflowInstance | None:
        turn(kernel, 2.0)
        instance = instance_of(kernel, job)
        return instance if instance.status.is_terminal else None

    found = eventually(look, timeout=timeout, interval=0.2, message="the workflow never ended")
    assert found is not None
    return found
