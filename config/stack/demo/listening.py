"""Act 3: a recording is transcribed although the worker that submitted it is killed.

Guarantees that the proof comes from the stored checkpoint, the stored output and the speech
service's own counts. Leaves the stage to `play`.
"""

import os
import signal
from pathlib import Path
from typing import Any

import httpx

from config.stack.demo import report
from config.stack.demo.acts import Stage, instance_of
from config.stack.demo.checks import await_that, insist
from jobs.demo_audio import RECORDING

_TIMEOUT = 60.0


def another_worker_asks_on(stage: Stage) -> None:
    """Kill the worker between submit and poll; show who asks, and that one task served."""
    say = stage.terminal.say
    say(stage.terminal.strong("\n3. A recording is followed by whoever is there\n"))
    before = _asked(stage)
    job = stage.client.order(
        {"kind": "audio", "source_url": stage.pages.address(RECORDING.file), "metadata": {}}
    )
    progress = report.Progress(stage.client, stage.terminal, {job["id"]: RECORDING.file})

    def submitted() -> dict[str, Any] | None:
        progress.look()
        instance = instance_of(stage, stage.client.job(job["id"]))
        checkpoint = instance.steps["transcribe_audio"].checkpoint
        return checkpoint if isinstance(checkpoint, dict) else None

    followed = await_that(
        submitted, seconds=_TIMEOUT, otherwise="the recording was never submitted"
    )
    task_id = str(followed["task_id"])
    victim = _who_said(stage, f"submitted to service as {task_id}")
    pid = stage.supervisor.pid(victim)
    insist(pid is not None, f"the worker {victim} has gone by itself")
    assert pid is not None
    say(f"\n  worker {victim} submitted it as {task_id} and holds nothing now: SIGKILL {pid}\n")
    children = _children(pid)
    os.kill(pid, signal.SIGKILL)
    await_that(
        lambda: not any(Path(f"/proc/{child}").exists() for child in children),
        seconds=_TIMEOUT,
        otherwise=f"processes of the worker {victim} outlived it",
    )

    (done,) = await_that(
        progress.finished, seconds=_TIMEOUT, otherwise="the recording was not transcribed"
    )
    insist(done["status"] == "ready", f"the job ended {done['status']}: {done['error']}")
    output = instance_of(stage, done).output["transcribe_audio"]
    insist(output["task_id"] == task_id, "another task was asked for than was submitted")
    after = _asked(stage)
    insist(after["submit"] == before.get("submit", 0) + 1, "the recording was submitted twice")
    asker = _who_said(stage, f"asked service for {task_id}", rather_not=victim)
    heir = stage.supervisor.pid(asker)
    insist(heir != pid, "the killed process asked for the task")
    say(f"\n  worker {asker} (process {heir}) asked for {task_id}; the service saw one submission")
    report.timeline(stage.terminal, instance_of(stage, done))
    say(f"\n  read aloud:  {RECORDING.transcript}")
    say(f"  understood:  {done['result']['transcript']}")
    insist("young man" in done["result"]["transcript"], "the transcript is not what was read")


def _asked(stage: Stage) -> dict[str, int]:
    answer = httpx.get(f"{stage.speech_url}/faults", trust_env=False)
    counts: dict[str, int] = answer.json()["asked"]
    return counts


def _who_said(stage: Stage, words: str, *, rather_not: str = "") -> str:
    """Return the name of a worker whose log holds these words; `rather_not` only if no other."""
    names = sorted(stage.workers, key=lambda name: name == rather_not)

    def look() -> str | None:
        for name in names:
            if any(words in line for line in stage.supervisor.last_lines(name)):
                return name
        return None

    return await_that(look, seconds=10.0, otherwise=f"no worker says {words!r}")


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
