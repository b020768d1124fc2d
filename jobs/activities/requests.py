"""What an activity of a content workflow was asked, and with which ports; typed.

Guarantees: a definition wired to the wrong plan or ports is noticed by an assertion, not by a
strange result. Leaves to others: what is done with it.
"""

from typing import TypeVar

from jobs.activities.outside import MediaPorts, Ports
from jobs.models import ContentArtifact
from jobs.plans import ContentInput
from jobs.services import rounds
from kernel import ActivityContext, NonRetryable

Input = TypeVar("Input", bound=ContentInput)


def request_of(ctx: ActivityContext, kind: type[Input]) -> Input:
    """Return the workflow's input as its plan describes it."""
    request = ctx.input
    assert isinstance(request, kind), "the plan names its input model"
    return request


def ports_of(ctx: ActivityContext) -> Ports:
    """Return the ports every content workflow has."""
    ports = ctx.ports
    assert isinstance(ports, Ports), "the definition names its ports"
    return ports


def media_of(ctx: ActivityContext) -> MediaPorts:
    """Return the ports of the workflows that work with sound."""
    ports = ctx.ports
    assert isinstance(ports, MediaPorts), "the definition names its ports"
    return ports


def artifact_of(job_id: str, output: dict[str, int], *, what: str) -> ContentArtifact:
    """Read what an earlier step made.

    Raises:
        NonRetryable: it is gone.
    """
    artifact = rounds.get_artifact(job_id, output["artifact"])
    if artifact is None:
        raise NonRetryable(f"the stored {what} of {job_id} is gone", code="artifact_missing")
    return artifact
