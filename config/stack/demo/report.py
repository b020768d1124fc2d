"""How the demonstration shows progress, results and timelines on a terminal.

Guarantees that what is shown comes from the API's answers and the stored instance, never from what
the demonstration believes. Leaves judging them to `acts`.
"""

import textwrap

from config.stack.demo.client import JobsClient, Json
from config.stack.terminal import Terminal
from kernel import WorkflowInstance

_WIDTH = 88
_FINAL = ("ready", "failed", "canceled")


class Progress:
    """Prints each change of a job's status or of one of its steps, once."""

    def __init__(self, client: JobsClient, terminal: Terminal, names: dict[str, str]) -> None:
        self._client = client
        self._terminal = terminal
        self._names = names
        self._seen: dict[tuple[str, str], str] = {}

    def look(self) -> list[Json]:
        """Ask for every job and print what changed; returns the jobs as they are now."""
        return [self._look(job_id, name) for job_id, name in self._names.items()]

    def finished(self) -> list[Json] | None:
        """Look, and return the jobs once all of them have ended."""
        jobs = self.look()
        return jobs if all(job["status"] in _FINAL for job in jobs) else None

    def _look(self, job_id: str, name: str) -> Json:
        job = self._client.job(job_id)
        for step in (job["progress"] or {"steps": []})["steps"]:
            if step["status"] != "pending":
                self._show(name, step["name"], f"{step['status']} (attempt {step['attempt']})")
        self._show(name, "job", job["status"])
        return job

    def _show(self, name: str, what: str, state: str) -> None:
        if self._seen.get((name, what)) != state:
            self._seen[name, what] = state
            self._terminal.say(f"  {name:<14} {what:<16} {state}")


def result(terminal: Terminal, job: Json) -> None:
    """Print what a client gets."""
    terminal.say()
    terminal.say(f"  {terminal.strong(job['title'])}")
    found = job["result"]
    terminal.say(
        f"  {found['source_words']} words in {found['language'] or 'an unnamed language'}, "
        f"summarised by {found['model']}:"
    )
    for sentence in found["sentences"]:
        terminal.say(
            textwrap.fill(sentence, _WIDTH, initial_indent="   - ", subsequent_indent="     ")
        )


def timeline(terminal: Terminal, instance: WorkflowInstance) -> None:
    """Print each attempt of each step with its times, from the stored instance."""
    begin = instance.round_started_at
    terminal.say()
    terminal.say(f"  {instance.workflow_id}  {instance.type}  {instance.status}")
    terminal.say("  step             attempt  outcome       from      to        activity   waiting")
    for name in instance.plan:
        step = instance.steps[name]
        for attempt in step.attempts:
            start = (attempt.from_ - begin).total_seconds()
            end = (attempt.to - begin).total_seconds()
            waiting = attempt.scheduling_ms + attempt.traffic_ms + attempt.external_ms
            terminal.say(
                f"  {name:<16} {attempt.n:>7}  {attempt.outcome:<12} {start:>6.2f} s  {end:>6.2f} s"
                f"  {attempt.activity_ms:>6} ms  {waiting:>6} ms"
            )
