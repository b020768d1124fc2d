"""The rest of the outbox killed at every arrow: start over, delete, announce, and callers' blocks.

Guarantees under test: one instance a generation and the newest one runs, a deleted job runs
nothing, one notification a round; and at every moment the ledger says what the jobs' statuses say.
"""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.test import Client

from jobs.activities.notify import NotifyPorts
from jobs.dispatch import relay
from jobs.dispatch.generations import next_generation_key
from jobs.dispatch.recovery import dispatch_due
from jobs.models import ContentJob, Notification
from jobs.notifying import WebhookSender
from jobs.services import access, content, deleting, quota, rounds
from jobs.services.errors import JobNotFound
from jobs.workflows.notify import notify_definition
from kernel import Kernel
from tests.crash import invariants
from tests.crash.scenarios.dispatching import Cancel, Retry, Submit
from tests.crash.scenarios.scenario import Scenario
from tests.crash.stage import Stage
from tests.crash.world import World
from tests.quota.books import of_books

#: Later than every deletion of a run.
_LATER = timedelta(days=1)


class Outbox(Submit):
    """Jobs in any number of generations, with their quota and notifications."""

    def connect(self, stage: Stage) -> Kernel:
        settings.BATON_FETCH_ALLOW_PRIVATE = True
        kernel = super().connect(stage)
        sender = WebhookSender(keys=["a key of the crash tests"], allow_private=True)
        kernel.register(notify_definition(NotifyPorts(notifier=sender)))
        return kernel

    def biz_keys(self, world: World) -> list[str]:
        told = Notification.objects.filter(tenant=world.run)
        return [key for job in jobs_of(world) for key in generations(job)] + [
            row.dispatch_key() for row in told
        ]

    def look(self, stage: Stage) -> Iterator[str]:
        assert stage.kernel
        for job in jobs_of(stage.world):
            instance = stage.kernel.find(biz_key=str(job.dispatch_biz_key))
            yield from invariants.of_intent(job.dispatch_status, job.round, instance)
        yield from of_books(stage.world.run)

    def make_ready(self, stage: Stage) -> ContentJob:
        """Post a job and run it to its end."""
        job = self.submit(stage)
        stage.kernel.drain(["content"])
        job = content.get_job(job.tenant, job.pk)
        assert job.status == "ready", (job.status, job.error_message)
        return job


class Regenerate(Outbox):
    """A job that is ready is done over."""

    def arrange(self, stage: Stage) -> None:
        self.make_ready(stage)

    def act(self, stage: Stage) -> None:
        (job,) = jobs_of(stage.world)
        content.regenerate_job(job.tenant, job.pk)

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = jobs_of(stage.world)
        if job.round == 1:
            content.regenerate_job(job.tenant, job.pk)
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = jobs_of(stage.world)
        yield from ended(stage, job, ("ready", "dispatched", 2), ["completed", "completed"])


class RegenerateRefused(Regenerate):
    """A round that was refused is done over; what it had reserved is given back."""

    def arrange(self, stage: Stage) -> None:
        job = self.make_ready(stage)
        with transaction.atomic():
            pending_again(job)
            quota.reserve(job.tenant, job.pk, 2)
        stage.advance(10)
        dispatch_due(kernel=stage.kernel)
        (job,) = jobs_of(stage.world)
        assert job.dispatch_status == "refused", job.dispatch_status

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = jobs_of(stage.world)
        if job.dispatch_status == "refused":
            content.regenerate_job(job.tenant, job.pk)
        Submit.recover(self, stage)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = jobs_of(stage.world)
        yield from ended(stage, job, ("ready", "dispatched", 3), ["completed", "completed"])


class GenerationRecovery(Regenerate):
    """The dispatcher finds a new generation that nobody has registered, the old one still open."""

    def arrange(self, stage: Stage) -> None:
        job = self.submit(stage)
        # As a job looks that ended while its worker had yet to say so to the kernel.
        ContentJob._base_manager.filter(pk=job.pk).update(status="failed")
        with transaction.atomic():
            quota.refund(job.pk, 1)
        relay.breaker.failed()
        content.regenerate_job(job.tenant, job.pk)
        relay.breaker.succeeded()
        stage.advance(10)

    def act(self, stage: Stage) -> None:
        dispatch_due(kernel=stage.kernel)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = jobs_of(stage.world)
        yield from ended(stage, job, ("ready", "dispatched", 2), ["canceled", "completed"])


class Delete(Outbox):
    """A job at work is deleted, and later purged."""

    def arrange(self, stage: Stage) -> None:
        self.submit(stage)

    def act(self, stage: Stage) -> None:
        (job,) = jobs_of(stage.world)
        deleting.delete_job(job.tenant, job.pk)

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = jobs_of(stage.world)
        self.key = job.dispatch_key()
        try:
            deleting.delete_job(job.tenant, job.pk)
        except JobNotFound:
            assert job.deleted_at is not None
        super().recover(stage)
        deleting.purge_deleted(older_than=-_LATER)

    def check(self, stage: Stage) -> Iterator[str]:
        if left := jobs_of(stage.world):
            yield f"is still there: {left[0].status}, {left[0].dispatch_status}"
        instance = stage.kernel.find(biz_key=self.key)
        if instance is None or instance.status != "canceled":
            yield f"its instance is {instance and instance.status}"


class Announce(Outbox):
    """A round ends whose client wants to be told, as a finalizer ends it; then the telling."""

    def arrange(self, stage: Stage) -> None:
        assert stage.kernel
        site = stage.world.site_url
        # Nobody registers the job's own workflow, so that it adds nothing to what is killed.
        relay.breaker.failed()
        content.submit_job(
            tenant=stage.world.run,
            kind="article",
            source_url=f"{site}/tides",
            options={"notify_url": f"{site}/hook"},
        )
        relay.breaker.succeeded()

    def act(self, stage: Stage) -> None:
        (job,) = jobs_of(stage.world)
        rounds.finish_ready(job.pk, 1, title="told", result={"summary": "told"})
        stage.kernel.drain(["content"])

    def recover(self, stage: Stage) -> None:
        assert stage.kernel
        (job,) = jobs_of(stage.world)
        rounds.finish_ready(job.pk, 1, title="told", result={"summary": "told"})
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        (job,) = jobs_of(stage.world)
        # The job's own workflow comes late, finds its round over, and ends without a step.
        yield from ended(stage, job, ("ready", "dispatched", 1), ["canceled"])
        told = list(Notification.objects.filter(job=job))
        if [(row.status, row.dispatch_status) for row in told] != [("delivered", "dispatched")]:
            yield f"notifications are {[(row.status, row.error_message) for row in told]}"


def in_blocks(operation: type[Scenario]) -> type[Scenario]:
    """Put an operation into its caller's blocks, beside a callback of the caller's that raises."""

    def act(self: Scenario, stage: Stage) -> None:
        def fail() -> None:
            raise ZeroDivisionError

        assert stage.kernel
        try:
            with transaction.atomic(), transaction.atomic():
                transaction.on_commit(fail)
                operation.act(self, stage)
        except ZeroDivisionError:
            return
        raise AssertionError("the caller's own callback was never called")

    def look(self: Scenario, stage: Stage) -> Iterator[str]:
        yield from operation.look(self, stage)
        yield from of_books(stage.world.run)

    return type(f"{operation.__name__}InBlocks", (operation,), {"act": act, "look": look})


class AtomicRequest(Outbox):
    """A request over HTTP where every request is one transaction."""

    def arrange(self, stage: Stage) -> None:
        assert stage.kernel
        user = User.objects.create_user(f"user-{stage.world.run}")
        token = access.issue_token(user=user, tenant=stage.world.run, name="crash").raw
        settings.ALLOWED_HOSTS = ["*"]
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = True
        self.client = Client(headers={"Authorization": f"Bearer {token}"})

    def act(self, stage: Stage) -> None:
        assert stage.kernel
        body = {"kind": "article", "source_url": f"{stage.world.site_url}/tides"}
        answer = self.client.post("/api/v1/jobs", body, content_type="application/json")
        assert answer.status_code == 202, answer.content

    def check(self, stage: Stage) -> Iterator[str]:
        jobs = jobs_of(stage.world)
        if len(jobs) > 1:
            yield f"{len(jobs)} jobs of one request"
        for job in jobs:
            yield from ended(stage, job, ("ready", "dispatched", 1), ["completed"])


SubmitInBlocks = in_blocks(Submit)
RetryInBlocks = in_blocks(Retry)
CancelInBlocks = in_blocks(Cancel)
RegenerateInBlocks = in_blocks(Regenerate)
DeleteInBlocks = in_blocks(Delete)


def jobs_of(world: World) -> list[ContentJob]:
    """Return the run's jobs, oldest first."""
    return list(ContentJob.objects.filter(tenant=world.run).order_by("created_at", "pk"))


def generations(job: ContentJob) -> list[str]:
    """Name every generation a job has had."""
    keys = [job.dispatch_key()]
    while keys[-1] != job.dispatch_biz_key:
        keys.append(next_generation_key(keys[0], keys[-1]))
    return keys


def pending_again(job: ContentJob) -> None:
    """Put a second round into the row of a finished job, as a restored backup may."""
    snapshot = {**job.dispatch_input, "fencing_token": 2}
    ContentJob._base_manager.filter(pk=job.pk).update(
        status="initial",
        result=None,
        dispatch_status="pending",
        dispatch_fencing_token=2,
        dispatch_input=snapshot,
        dispatch_next_at=job.created_at,
    )


def ended(
    stage: Stage, job: ContentJob, wanted: tuple[str, str, int], instances: list[str | None]
) -> Iterator[str]:
    """Compare a job's end, and its instances' by generation."""
    found = (job.status, job.dispatch_status, job.round)
    if found != wanted:
        yield f"job ended {found}, not {wanted}: {job.dispatch_last_error or job.error_message}"
    known = [stage.kernel.find(biz_key=key) for key in generations(job)]
    statuses = [None if instance is None else str(instance.status) for instance in known]
    if statuses != instances:
        yield f"instances ended {statuses}, not {instances}"
