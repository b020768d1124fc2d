"""The first two acts of the demonstration and the claims they check.

Guarantees that the proof of act 2 compares stored facts: a completed step that had been entered
again would have another transition number (`seq`), attempt or end.
Leaves the stage (stack, pages, clients) to `play`.
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from config.stack.demo import report
from config.stack.demo.checks import await_that, insist
from config.stack.demo.client import JobsClient, Json
from config.stack.demo.pages import PageServer
from config.stack.supervisor import Supervisor
from config.stack.terminal import Terminal
from jobs.demo_pages import PAGES
from kernel import Kernel, WorkflowInstance

#: Seconds within which plain jobs must be done.
_JOBS_TIMEOUT = 60.0
#: Seconds within which a held page must be asked for, a second time lease and restart included.
_VISIT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything an act plays with."""

    terminal: Terminal
    client: JobsClient
    pages: PageServer
    kernel: Kernel
    supervisor: Supervisor
    #: Names of the supervisor's children that serve the work queues.
    workers: tuple[str, ...]
    #: Where the speech service answers, faults and counts included.
    speech_url: str
    tenant: str


def articles_become_summaries(stage: Stage) -> None:
    """Act 1: post the shipped pages, watch them, show results and timelines."""
    say = stage.terminal.say
    say(stage.terminal.strong("\n1. Requests become finished, durable results\n"))
    names = {}
    for page in PAGES:
        metadata: Json = {"from": "demo", "file": page.file}
        job = stage.client.submit(stage.pages.address(page.file), metadata=metadata)
        names[job["id"]] = page.file
        say(f"  {page.file:<14} accepted     202, {job['id']}, round {job['round']}")
    progress = report.Progress(stage.client, stage.terminal, names)
    jobs = await_that(
        progress.finished, seconds=_JOBS_TIMEOUT, otherwise="the articles were not finished"
    )
    for page, job in zip(PAGES, jobs, strict=True):
        insist(job["status"] == "ready", f"{page.file} ended {job['status']}: {job['error']}")
        insist(page.title in job["title"], f"{page.file} got the title {job['title']!r}")
        insist(job["result"]["sentences"], f"{page.file} got an empty summary")
        insist(job["metadata"]["file"] == page.file, "the client's own data came back changed")
        insist(stage.pages.visits(page.file) == 1, f"{page.file} was fetched more than once")
        report.result(stage.terminal, job)
        report.timeline(stage.terminal, instance_of(stage, job))


def another_worker_carries_on(stage: Stage) -> None:
    """Act 2: kill the worker mid-step; show who finishes, and that nothing repeats."""
    say = stage.terminal.say
    file = PAGES[0].file
    say(stage.terminal.strong("\n2. A worker is killed in the middle of a step\n"))
    job = stage.client.submit(stage.pages.address(file, held=True), metadata={"from": "demo"})
    progress = report.Progress(stage.client, stage.terminal, {job["id"]: f"slow {file}"})
    _await_visit(stage, file, 1, progress)
    before = instance_of(stage, stage.client.job(job["id"]))
    victim, pid = _worker_of(stage, before)
    say(f"\n  {before.claim_owner} (worker {victim}) waits for the page: SIGKILL {pid}\n")
    os.kill(pid, signal.SIGKILL)

    _await_visit(stage, file, 2, progress)
    during = instance_of(stage, stage.client.job(job["id"]))
    insist(during.claim_owner != before.claim_owner, "the dead process still holds the claim")
    heir, _ = _worker_of(stage, during)
    say(f"\n  {during.claim_owner} (worker {heir}) has taken over; the page answers now\n")
    stage.pages.release()
    (done,) = await_that(
        progress.finished, seconds=_JOBS_TIMEOUT, otherwise="the job was not finished elsewhere"
    )
    insist(done["status"] == "ready", f"the job ended {done['status']}: {done['error']}")
    after = instance_of(stage, done)
    report.timeline(stage.terminal, after)
    _prove_nothing_repeated(stage, before, after)
    insist(stage.pages.visits(file, held=True) == 2, "the page was fetched a third time")


def _prove_nothing_repeated(
    stage: Stage, before: WorkflowInstance, after: WorkflowInstance
) -> None:
    kept = [name for name in before.plan if before.steps[name].is_done]
    insist(kept, "no step had completed before the kill")
    stage.terminal.say()
    for name in before.plan:
        old, new = before.steps[name], after.steps[name]
        insist(new.status == "completed", f"{name} ended {new.status}")
        if name in kept:
            same = (old.seq, old.attempt, old.finished_at) == (
                *(new.seq, new.attempt),
                new.finished_at,
            )
            insist(same, f"{name} was complete and ran again")
            stage.terminal.say(f"  {name:<12} was complete and was not entered again")
        elif old.status == "running":
            insist(new.attempt == old.attempt + 1, f"{name} ended in attempt {new.attempt}")
            stage.terminal.say(f"  {name:<12} was cut off and ran again as attempt {new.attempt}")
        else:
            insist(new.attempt == 1, f"{name} ended in attempt {new.attempt}")
            stage.terminal.say(f"  {name:<12} had not begun and ran once")


def _await_visit(stage: Stage, file: str, number: int, progress: report.Progress) -> None:
    def arrived() -> bool:
        progress.look()
        return stage.pages.visits(file, held=True) >= number

    await_that(
        arrived, seconds=_VISIT_TIMEOUT, otherwise=f"nobody asked for the page ({number}. time)"
    )
    progress.look()


def instance_of(stage: Stage, job: Mapping[str, object]) -> WorkflowInstance:
    """Read the stored instance behind a job."""
    return stage.kernel.get(str(job["workflow_id"]))


def _worker_of(stage: Stage, instance: WorkflowInstance) -> tuple[str, int]:
    """Return name and pid of the worker whose pool process holds the claim."""
    insist(instance.claim_owner, "a running step has no claim")
    holder = int(str(instance.claim_owner).split(":")[1])
    group = os.getpgid(holder)
    for name in stage.workers:
        pid = stage.supervisor.pid(name)
        if pid == group:
            return name, pid
    insist(False, f"the claim's owner {instance.claim_owner} is no process of this stack")
    raise AssertionError
