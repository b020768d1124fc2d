"""The reference business killed at every arrow: request, retry, cancel, recovery, a whole claim.

Guarantees under test: an accepted request always reaches its workflow (I1), one instance a
generation (I2), the newest round ends ready and a canceled one withdrawn.
"""

from collections.abc import Iterator

from django.conf import settings
from django.db import connections

from jobs.activities.outside import Ports
from jobs.composing import ExtractiveComposer
from jobs.dispatch import relay
from jobs.dispatch.recovery import dispatch_due
from jobs.fetching import PageFetcher
from jobs.models import ContentArtifact, ContentJob
from jobs.runtime import get_kernel
from jobs.services import content
from jobs.workflows.article import article_definition
from kernel import Kernel
from tests.crash import invariants
from tests.crash.scenarios.scenario import Scenario
from tests.crash.stage import Stage
from tests.crash.world import LEASE_SECONDS, World


class _Dispatching(Scenario):
    """Jobs of a tenant of the run's own; their activities keep no ledger, their rows tell."""

    entries = None

    def connect(self, stage: Stage) -> Kernel:
        settings.BATON_DATABASE = stage.world.database
        settings.BATON_KEY_PREFIX = stage.world.key_prefix
        settings.BATON_LEASE_SECONDS = LEASE_SECONDS
        settings.BATON_CLOCK_OFFSET_MS = stage.offset_ms
        kernel = get_kernel()
        ports = Ports(pages=PageFetcher(allow_private=True), composer=ExtractiveComposer())
        kernel.register(article_definition(ports))
        return kernel

    def biz_keys(self, world: World) -> list[str]:
        return [job.dispatch_key() for job in _jobs(world)]

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        keys = self.biz_keys(stage.world)
        stage.converge(keys, queue="content", also=lambda: dispatch_due(kernel=stage.kernel))

    def look(self, stage: Stage) -> Iterator[str]:
        assert stage.kernel
        for job in _jobs(stage.world):
            instance = stage.kernel.find(biz_key=job.dispatch_key())
            yield from invariants.of_intent(job.dispatch_status, job.round, instance)

    def submit(self, stage: Stage, path: str = "/tides") -> ContentJob:
        """Post a job about a page of the lab's site."""
        assert stage.kernel
        url = stage.world.site_url + path
        return content.submit_job(tenant=stage.world.run, kind="article", source_url=url)

    def fail_first(self, stage: Stage) -> ContentJob:
        """Post a job whose first round has failed: its page was not there yet."""
        job = self.submit(stage, f"/once/{stage.world.run}")
        stage.kernel.drain(["content"])
        job = content.get_job(job.tenant, job.pk)
        assert job.status == "failed", (job.status, job.error_message)
        return job


class Submit(_Dispatching):
    """A request: insert, register, confirm, push, ring."""

    def arrange(self, stage: Stage) -> None:
        assert not _jobs(stage.world)

    def act(self, stage: Stage) -> None:
        self.submit(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        jobs = _jobs(stage.world)
        if len(jobs) > 1:
            yield f"{len(jobs)} jobs of one request"
        for job in jobs:
            yield from _ended(stage, job, ("ready", "dispatched", 1), "completed")


class Retry(_Dispatching):
    """A user's retry: a new round of a failed job."""

    def arrange(self, stage: Stage) -> None:
        self.fail_first(stage)

    def act(self, stage: Stage) -> None:
        (job,) = _jobs(stage.world)
        content.retry_job(job.tenant, job.pk)

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = _jobs(stage.world)
        if job.round == 1:
            content.retry_job(job.tenant, job.pk)
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = _jobs(stage.world)
        yield from _ended(stage, job, ("ready", "dispatched", 2), "completed")
        instance = stage.find(job.dispatch_key())
        if (instance.fencing_token, instance.retry_count) != (2, 1):
            yield f"instance is in round {instance.fencing_token} after {instance.retry_count}"


class Cancel(_Dispatching):
    """A cancel of a job whose instance exists."""

    def arrange(self, stage: Stage) -> None:
        self.submit(stage)

    def act(self, stage: Stage) -> None:
        (job,) = _jobs(stage.world)
        content.cancel_job(job.tenant, job.pk)

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = _jobs(stage.world)
        self.was_canceled = job.status == "canceled"
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = _jobs(stage.world)
        if self.was_canceled:
            yield from _ended(stage, job, ("canceled", "withdrawn", 1), "canceled")
        else:
            yield from _ended(stage, job, ("ready", "dispatched", 1), "completed")


class Recovery(_Dispatching):
    """The recovery dispatcher, with a job to register and two to withdraw."""

    def arrange(self, stage: Stage) -> None:
        registered = self.submit(stage)
        relay.breaker.failed()
        pending, unregistered = self.submit(stage), self.submit(stage)
        for job in (registered, unregistered):
            content.cancel_job(job.tenant, job.pk)
        relay.breaker.succeeded()
        rows = {job.pk: job.dispatch_status for job in _jobs(stage.world)}
        assert rows[pending.pk] == "pending"
        assert rows[registered.pk] == rows[unregistered.pk] == "withdrawing"
        stage.advance(10)

    def act(self, stage: Stage) -> None:
        dispatch_due(kernel=stage.kernel)

    def check(self, stage: Stage) -> Iterator[str]:
        registered, pending, unregistered = _jobs(stage.world)
        yield from _ended(stage, pending, ("ready", "dispatched", 1), "completed")
        yield from _ended(stage, registered, ("canceled", "withdrawn", 1), "canceled")
        yield from _ended(stage, unregistered, ("canceled", "withdrawn", 1), None)


class RecoveryPage(_Dispatching):
    """The recovery dispatcher, with four jobs to register: one alone, then a page."""

    def arrange(self, stage: Stage) -> None:
        relay.breaker.failed()
        for _ in range(4):
            self.submit(stage)
        relay.breaker.succeeded()
        stage.advance(10)

    def act(self, stage: Stage) -> None:
        assert dispatch_due(kernel=stage.kernel).handled == 4

    def check(self, stage: Stage) -> Iterator[str]:
        for job in _jobs(stage.world):
            yield from _ended(stage, job, ("ready", "dispatched", 1), "completed")


class Article(_Dispatching):
    """A whole claim of `content.article`, with every business write."""

    def arrange(self, stage: Stage) -> None:
        self.submit(stage)

    def act(self, stage: Stage) -> None:
        stage.kernel.drain(["content"])

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = _jobs(stage.world)
        yield from _ended(stage, job, ("ready", "dispatched", 1), "completed")
        kinds = sorted(ContentArtifact.objects.filter(job=job).values_list("kind", flat=True))
        if kinds != ["composition", "page"]:
            yield f"artifacts are {kinds}"
        if not job.result or not job.result["summary"]:
            yield "is ready without a summary"


def _jobs(world: World) -> list[ContentJob]:
    """Return the run's jobs, oldest first."""
    connections["default"].ensure_connection()
    return list(ContentJob.objects.filter(tenant=world.run).order_by("created_at", "pk"))


def _ended(
    stage: Stage, job: ContentJob, wanted: tuple[str, str, int], instance_status: str | None
) -> Iterator[str]:
    ended = (job.status, job.dispatch_status, job.round)
    if ended != wanted:
        yield f"job ended {ended}, not {wanted}: {job.dispatch_last_error or job.error_message}"
    instance = stage.kernel.find(biz_key=job.dispatch_key())
    status = None if instance is None else instance.status
    if status != instance_status:
        yield f"instance ended {status}, not {instance_status}"
