"""What must be true when all is healed and idle; each thing that is not is one sentence.

Guarantees that it looks at facts only: MongoDB, the business database, Redis, the ledger of
entries. Leaves waiting for idleness to the run.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db import connection

from jobs.models import ContentJob
from jobs.runtime import get_kernel
from kernel import StepStatus, Unreadable, WorkflowInstance
from tests.chaos.business import plans
from tests.chaos.counting import Call, most_at_once
from tests.chaos.load import Load, Promise
from tests.crash import invariants

Line = dict[str, Any]
Entries = dict[tuple[str, str, int], Counter[int]]

_TRIGGERS = (
    "CREATE TABLE chaos_results (job_id TEXT, round INTEGER, asked INTEGER)",
    """CREATE TRIGGER chaos_result AFTER UPDATE ON jobs_contentjob
    WHEN NEW.status = 'ready' AND OLD.status IS NOT NEW.status
    BEGIN
        INSERT INTO chaos_results
        VALUES (NEW.id, NEW.dispatch_fencing_token, OLD.dispatch_fencing_token);
    END""",
)


def watch_results() -> None:
    """Let the business database itself note every result that is written."""
    with connection.cursor() as cursor:
        for statement in _TRIGGERS:
            cursor.execute(statement)


def unfinished(load: Load) -> list[str]:
    """Return what was accepted and has not come to its end yet."""
    found, damaged = _instances(list(load.accepted))
    late = [
        key
        for key, promise in load.accepted.items()
        if key not in damaged and not _is_over(found.get(key), promise)
    ]
    for job in ContentJob.objects.filter(pk__in=load.jobs):
        of_job, _ = _instances([job.dispatch_biz_key or ""])
        is_open = job.status in ("initial", "generating") or job.dispatch_status not in (
            "dispatched",
            "withdrawn",
        )
        if is_open or any(not instance.status.is_terminal for instance in of_job.values()):
            late.append(job.pk)
    return late


def _is_over(instance: WorkflowInstance | None, promise: Promise) -> bool:
    return (
        instance is not None
        and instance.status.is_terminal
        and instance.fencing_token >= promise.round
    )


def judge(
    load: Load, lines: list[Line], calls: list[Call], hint_keys: list[str], database: Any
) -> list[str]:
    """Return everything that is wrong."""
    jobs = {job.dispatch_biz_key or job.pk: job for job in ContentJob.objects.all()}
    keys = [*load.accepted, *jobs]
    instances, damaged = _instances(keys)
    return [
        *_of_nothing(keys),
        *load.errors,
        *(f"{key} cannot be read: {why}" for key, why in damaged.items()),
        *_of_ends(load.accepted, instances),
        *_of_jobs(load, jobs, instances),
        *_of_identity(database, set(keys)),
        *invariants.of_instances(instances.values()),
        *_of_entries(instances, lines),
        *_of_results(),
        *of_limits(instances, calls),
        *_of_leftovers(database),
        *invariants.of_hints(hint_keys),
    ]


def _instances(keys: list[str]) -> tuple[dict[str, WorkflowInstance], dict[str, str]]:
    """Return the instances there are, and why others cannot be read."""
    found: dict[str, WorkflowInstance] = {}
    damaged: dict[str, str] = {}
    for key in keys:
        try:
            instance = get_kernel().find(biz_key=key)
        except Unreadable as error:
            damaged[key] = error.fault
        else:
            if instance is not None:
                found[key] = instance
    return found, damaged


def _of_nothing(keys: list[str]) -> list[str]:
    return [] if keys else ["nothing was accepted, so nothing is proved"]


def _of_ends(accepted: dict[str, Promise], instances: dict[str, WorkflowInstance]) -> Iterator[str]:
    for key, promise in accepted.items():
        instance = instances.get(key)
        if instance is None:
            yield f"{key} was accepted and does not exist"
        elif instance.status not in promise.ends:
            why = instance.error and f"{instance.error.step}: {instance.error.message}"
            yield f"{key} ended {instance.status} instead of {' or '.join(promise.ends)}: {why}"
        elif instance.fencing_token != promise.round:
            yield f"{key} ended in round {instance.fencing_token} of {promise.round}"
        for name, output in (instance.output if instance else {}).items():
            if not 1 <= output["round"] <= promise.round:
                yield f"{key}: {name} has a result of round {output['round']}"


def _of_jobs(
    load: Load, jobs: dict[str, ContentJob], instances: dict[str, WorkflowInstance]
) -> Iterator[str]:
    rows = {job.pk: job for job in jobs.values()}
    for job_id, promise in load.jobs.items():
        job = rows.get(job_id)
        if job is None:
            yield f"job {job_id} was accepted and does not exist"
        elif job.status not in promise.ends:
            yield f"job {job_id} ended {job.status}: {job.error_message}"
        else:
            found = instances.get(job.dispatch_biz_key or "")
            for sentence in invariants.of_intent(job.dispatch_status, job.round, found):
                yield f"job {job_id} {sentence}"


def _of_identity(database: Any, known: set[str]) -> Iterator[str]:
    keys = Counter(row["biz_key"] for row in database.workflow_instances.find({}, {"biz_key": 1}))
    for key, count in keys.items():
        if count > 1:
            yield f"{key} has {count} instances"
        if key not in known:
            yield f"{key} was never accepted and exists"


def _of_entries(instances: dict[str, WorkflowInstance], lines: list[Line]) -> Iterator[str]:
    """Each attempt is entered once; a step is entered again only when its attempt was cut off."""
    by_id = {instance.workflow_id: instance for instance in instances.values()}
    entries = Counter(
        (line["workflow_id"], line["step"], line["round"], line["attempt"])
        for line in lines
        if line["what"] == "enter" and not line["resumed"]
    )
    for (workflow_id, step, number, attempt), count in entries.items():
        if count > 1 and step not in plans.RESUMED:
            yield f"{workflow_id}: attempt {attempt} of {step} was entered {count} times"
        instance = by_id.get(workflow_id)
        if instance is None:
            yield f"{workflow_id}: {step} was entered for an instance that does not exist"
        elif number > instance.fencing_token:
            yield f"{workflow_id}: {step} was entered in round {number}, which never began"
        elif number == instance.fencing_token and attempt > instance.steps[step].attempt:
            yield f"{workflow_id}: {step} was entered as attempt {attempt}, which is not recorded"
    yield from _of_later_entries(instances, lines)


def _of_later_entries(instances: dict[str, WorkflowInstance], lines: list[Line]) -> Iterator[str]:
    """What has completed is not entered again, whoever died meanwhile."""
    last: dict[tuple[str, str, int], int] = {}
    for line in lines:
        if line["what"] == "enter":
            last[line["workflow_id"], line["step"], line["round"]] = line["attempt"]
    for instance in instances.values():
        for name, step in instance.steps.items():
            output = instance.output.get(name)
            if step.status is not StepStatus.COMPLETED or not isinstance(output, dict):
                continue
            key = (instance.workflow_id, name, output.get("round", 0))
            if key in last and last[key] > output["attempt"]:
                yield f"{instance.biz_key}: {name} was entered after it had completed"


def of_limits(instances: dict[str, WorkflowInstance], calls: list[Call]) -> Iterator[str]:
    """Calls that came home under their claim held a permit throughout: never more than allowed."""
    held = permitted(instances, calls)
    most = most_at_once(held)
    if most > plans.CALLS_AT_ONCE:
        yield f"{most} calls held permits of {plans.RESOURCE} at once, {plans.CALLS_AT_ONCE} may"


def permitted(instances: dict[str, WorkflowInstance], calls: list[Call]) -> list[Call]:
    """Return the calls whose result was stored; the claims of the others were lost."""
    home = {
        (instance.workflow_id, output["round"], output["attempt"])
        for instance in instances.values()
        if isinstance(output := instance.output.get("call"), dict)
    }
    return [
        call
        for call in calls
        if (call.who["workflow_id"], call.who["round"], call.who["attempt"]) in home
    ]


def _of_results() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT job_id, round, asked, COUNT(*) FROM chaos_results GROUP BY 1, 2, 3")
        for job_id, number, asked, count in cursor.fetchall():
            if count > 1:
                yield f"job {job_id}: the result of round {number} was written {count} times"
            if number != asked:
                yield f"job {job_id}: round {number} wrote a result over round {asked}"


def _of_leftovers(database: Any) -> Iterator[str]:
    held = database.workflow_instances.count_documents({"claim_token": {"$exists": True}})
    if held:
        yield f"{held} instances are still held by a claim"
    waiting = database.workflow_instances.count_documents({"waits.0": {"$exists": True}})
    if waiting:
        yield f"{waiting} instances still wait"
    status = get_kernel().capacity.status(plans.RESOURCE)
    if status.used or status.reserved or status.waiting:
        yield f"{plans.RESOURCE} still has holders {status.holders}, waiters {status.waiters}"
