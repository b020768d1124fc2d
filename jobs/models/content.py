"""ContentJob: what a client asked for and got; ContentArtifact: what its steps made on the way.

Guarantees: a job and its dispatch intent are one row. Artifacts are unique per job, round and kind,
so a repeated step finds what it made. Leaves to others: all writes (`jobs.services`).
"""

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from jobs.dispatch import DispatchMixin, ExactJSONField, StatusMapping
from jobs.models.access import TENANT_CHARACTERS
from jobs.plans import ARTICLE, AUDIO, DIGEST, LIVE, URL_CHARACTERS
from kernel import Plan


class JobKind(models.TextChoices):
    """What the source is."""

    ARTICLE = "article"
    AUDIO = "audio"
    LIVE = "live"
    DIGEST = "digest"


class JobStatus(models.TextChoices):
    """Where a job stands for its client."""

    INITIAL = "initial"
    GENERATING = "generating"
    READY = "ready"
    FAILED = "failed"
    CANCELED = "canceled"


#: Statuses in which a round is still open.
OPEN_STATUSES = (JobStatus.INITIAL.value, JobStatus.GENERATING.value)
TERMINAL_STATUSES = (JobStatus.READY.value, JobStatus.FAILED.value, JobStatus.CANCELED.value)


#: The workflow of each kind.
PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        JobKind.ARTICLE.value: ARTICLE,
        JobKind.AUDIO.value: AUDIO,
        JobKind.LIVE.value: LIVE,
        JobKind.DIGEST.value: DIGEST,
    }
)

#: The option that names who is told of a round's end.
NOTIFY_URL = "notify_url"


def new_job_id() -> str:
    """Make a fresh, unguessable id; its prefix tells people what it names."""
    return f"job_{uuid.uuid4().hex}"


class ContentJob(DispatchMixin):
    """One piece of content somebody asked for."""

    dispatch_mapping = StatusMapping(
        initial=JobStatus.INITIAL,
        failed=JobStatus.FAILED,
        canceled=JobStatus.CANCELED,
        terminal=frozenset(TERMINAL_STATUSES),
        cleared=MappingProxyType(
            {
                "title": "",
                "result": None,
                "error_code": "",
                "error_message": "",
                "finished_at": None,
            }
        ),
        protected=frozenset({"deleted_at"}),
    )
    dispatch_plans = tuple(PLANS.values())

    id = models.CharField(primary_key=True, max_length=40, default=new_job_id, editable=False)
    tenant = models.SlugField(max_length=TENANT_CHARACTERS, db_index=False)
    kind = models.CharField(max_length=16, choices=JobKind.choices)
    source_url = models.CharField(max_length=URL_CHARACTERS)
    #: Options frozen at entry, defaults filled in.
    options = ExactJSONField(default=dict)
    #: The client's own JSON object, given back unchanged.
    metadata = ExactJSONField(default=dict)
    status = models.CharField(max_length=16, choices=JobStatus.choices, default=JobStatus.INITIAL)
    title = models.TextField(blank=True, default="")
    #: {summary, sentences, source_words, model, final_url, language, metadata}; None until ready.
    result = ExactJSONField(null=True)
    error_code = models.CharField(max_length=64, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="content_jobs"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    #: Since then the job does not exist for its tenant; the row goes once nothing runs for it.
    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta(DispatchMixin.Meta):
        """Indexes for keyset lists by tenant, on top of the intent's own."""

        indexes: ClassVar[list[models.Index]] = [
            *DispatchMixin.Meta.indexes,
            models.Index(fields=["tenant", "-created_at", "-id"], name="contentjob_by_tenant"),
            models.Index(
                fields=["tenant", "status", "-created_at", "-id"], name="contentjob_by_status"
            ),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="contentjob_deleted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.kind}, {self.status})"

    @property
    def round(self) -> int:
        """Number of the current business round, from 1."""
        return int(self.dispatch_fencing_token or 0)

    def dispatch_plan(self) -> Plan:
        """Choose the workflow by the kind."""
        return PLANS[self.kind]

    def dispatch_key(self) -> str:
        """Name the generation by type, tenant and job."""
        return f"{self.dispatch_plan().type}:{self.tenant}:{self.id}"

    def dispatch_payload(self) -> Mapping[str, Any]:
        """Give the workflow the frozen request; who is told of the end is none of its business."""
        return {
            "job_id": self.id,
            "tenant": self.tenant,
            "source_url": self.source_url,
            "metadata": self.metadata,
            **{name: value for name, value in self.options.items() if name != NOTIFY_URL},
        }


class ArtifactKind(models.TextChoices):
    """What a step made."""

    PAGE = "page"
    COMPOSITION = "composition"
    AUDIO = "audio"
    TRANSCRIPT = "transcript"


class ContentArtifact(models.Model):
    """An intermediate result too large for the workflow's own document."""

    job = models.ForeignKey(ContentJob, on_delete=models.CASCADE, related_name="artifacts")
    round = models.BigIntegerField()
    kind = models.CharField(max_length=16, choices=ArtifactKind.choices)
    text = models.TextField()
    details = ExactJSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """One artifact per job, round and kind."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "round", "kind"], name="artifact_once_per_round")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job_id}, round {self.round}"


class ArtifactFile(models.Model):
    """The bytes of an artifact that is no text, where every worker can read them."""

    artifact = models.OneToOneField(
        ContentArtifact, primary_key=True, on_delete=models.CASCADE, related_name="file"
    )
    content = models.BinaryField()

    def __str__(self) -> str:
        return f"file of artifact {self.artifact_id}"
