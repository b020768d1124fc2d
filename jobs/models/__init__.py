"""The business models; `jobs.services` is their only writer.

Guarantees: importing them imports no activity code. Leaves to others: every rule about when a
row changes.
"""

from jobs.models.access import ApiToken
from jobs.models.content import ArtifactKind, ContentArtifact, ContentJob, JobKind, JobStatus

__all__ = ["ApiToken", "ArtifactKind", "ContentArtifact", "ContentJob", "JobKind", "JobStatus"]
