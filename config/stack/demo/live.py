"""Act 4: jobs wait for a live event without holding anything; its end wakes each of them once.

Guarantees that waiting is checked in the stored instances: no claim, no attempt used up. Leaves the
stage to `play`.
"""

import textwrap

from config.stack.demo import report
from config.stack.demo.acts import Stage, instance_of
from config.stack.demo.checks import await_that, insist
from config.stack.demo.client import Json
from jobs.demo_audio import RECORDING
from jobs.demo_pages import PAGES
from kernel import workflow_id_of

_TIMEOUT = 60.0
_WIDTH = 84


def an_event_wakes_its_subscribers(stage: Stage) -> None:
    """Announce, subscribe, end; one of the subscribers asks its user to choose."""
    say, client = stage.terminal.say, stage.client
    say(stage.terminal.strong("\n4. A live event wakes the jobs that wait for it\n"))
    event = client.announce("A reading from Sense and Sensibility")
    say(f"  announced    {event['id']}")
    waits: Json = {"live_event": event["id"]}
    plain = client.order({"kind": "live", "options": waits})
    digest = client.order(
        {"kind": "digest", "source_url": stage.pages.address(PAGES[2].file), "options": waits}
    )
    progress = report.Progress(
        client, stage.terminal, {plain["id"]: "live job", digest["id"]: "digest job"}
    )

    def all_wait() -> bool:
        return all(
            (job["waiting"] or {}).get("reason") == "signal" and _rests(stage, job)
            for job in progress.look()
        )

    await_that(all_wait, seconds=_TIMEOUT, otherwise="the jobs never waited for the event")
    say("\n  both wait: no worker, no thread and no message is held for them\n")

    client.end(event["id"], stage.pages.address(RECORDING.file))
    choice = await_that(
        lambda: progress.look() and client.choice(digest["id"]),
        seconds=_TIMEOUT,
        otherwise="the digest job never asked its user",
    )
    assert isinstance(choice, dict)
    say("\n  the digest job asks which one to publish:")
    for candidate in choice["candidates"]:
        text = f"{candidate['option']}: {candidate['summary']}"
        shown = textwrap.shorten(text, 2 * _WIDTH, placeholder=" …")
        say(textwrap.fill(shown, _WIDTH, initial_indent="   - ", subsequent_indent="     "))
    say("\n  chosen: brief\n")
    client.choose(digest["id"], "brief")
    client.choose(digest["id"], "brief")
    jobs = await_that(
        progress.finished, seconds=_TIMEOUT, otherwise="the woken jobs were not finished"
    )
    for job in jobs:
        insist(job["status"] == "ready", f"a job ended {job['status']}: {job['error']}")
        insist("young man" in job["result"]["transcript"], "a transcript is not what was read")
    insist(jobs[1]["result"]["option"] == "brief", "another candidate was published than chosen")
    _show_fan_out(stage, event)
    report.timeline(stage.terminal, instance_of(stage, jobs[1]))


def _rests(stage: Stage, job: Json) -> bool:
    instance = instance_of(stage, job)
    return instance.claim_token is None and instance.status == "waiting"


def _show_fan_out(stage: Stage, event: Json) -> None:
    tenant = stage.tenant
    fan_out = stage.kernel.get(workflow_id_of(f"live.fanout:{tenant}:{event['id']}"))
    insist(fan_out.output["notify"] == {"rung": 2}, f"the fan-out rang {fan_out.output}")
    stage.terminal.say(f"\n  {fan_out.workflow_id}  live.fanout rang twice, once at each job")
