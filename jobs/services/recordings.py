"""Recordings and transcripts as artifacts of a round.

Guarantees: a recording's row and its bytes are written together, fenced by the round; where every
worker reads them, so whoever carries on needs nothing of the machine that fetched them. Leaves to
others: fetching and recognising.
"""

from typing import Any

from django.db import transaction

from jobs.models import ArtifactFile, ArtifactKind, ContentArtifact
from jobs.services import rounds


def find_recording(job_id: str, fencing_token: int) -> ContentArtifact | None:
    """Find the recording this round has fetched already."""
    return rounds.find_artifact(job_id, fencing_token, kind=ArtifactKind.AUDIO)


def keep_recording(
    job_id: str, fencing_token: int, *, content: bytes, details: dict[str, Any]
) -> ContentArtifact:
    """Store a recording. On repeat in a round: the first one stays.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone; nothing is stored.
    """
    with transaction.atomic():
        artifact = rounds.keep_artifact(
            job_id, fencing_token, kind=ArtifactKind.AUDIO, text="", details=details
        )
        ArtifactFile.objects.get_or_create(artifact=artifact, defaults={"content": content})
    return artifact


def read_content(artifact: ContentArtifact) -> bytes:
    """Read a recording's bytes."""
    return bytes(ArtifactFile.objects.get(artifact=artifact).content)


def find_transcript(job_id: str, fencing_token: int) -> ContentArtifact | None:
    """Find the transcript this round has got already."""
    return rounds.find_artifact(job_id, fencing_token, kind=ArtifactKind.TRANSCRIPT)


def keep_transcript(
    job_id: str, fencing_token: int, *, text: str, details: dict[str, Any]
) -> ContentArtifact:
    """Store a transcript. On repeat in a round: the first one stays.

    Raises:
        WorkflowCanceled: the round passed, or the job is over or gone; nothing is stored.
    """
    return rounds.keep_artifact(
        job_id, fencing_token, kind=ArtifactKind.TRANSCRIPT, text=text, details=details
    )
