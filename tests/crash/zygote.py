"""A process that has everything imported and nothing connected, and forks one child a job.

```
stdin: one JSON job a line ─▶ fork ─▶ child does it, or dies in it ─▶ stdout: one JSON reply a line
```

Guarantees that a job costs a fork and not an interpreter's start, and that a child that hangs is
ended. Leaves what a job means to the scenarios.
"""

import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from importlib import import_module
from typing import Any, Never, TypedDict

from config.embedded.process import die_with_parent
from tests.crash.kills import KILLED_STATUS, How, Kill, Killer, When, watch
from tests.crash.world import World

#: Seconds after which a child hangs.
_HANGS_AFTER = 60.0
#: What celery, kombu and Django import on first use, which would be once in every child.
_LAZY = (
    "celery.app.amqp",
    "celery.app.events",
    "celery.app.task",
    "celery.backends.base",
    "celery.canvas",
    "celery.events.dispatcher",
    "celery.events.receiver",
    "celery.result",
    "config.broker",
    "config.settings.transport",
    "django.db.models.sql.compiler",
    "kombu.transport.redis",
)


class Job(TypedDict):
    """What a child does: phase `set_up`, `act` (under a killer) or `rescue`."""

    phase: str
    scenario: str
    world: dict[str, Any]
    kill: dict[str, Any] | None
    died: bool


def serve() -> None:
    """Do jobs until stdin ends."""
    import django

    django.setup()
    import config.celery
    import tests.crash.rescue
    from tests.crash.scenarios import SCENARIOS, load

    assert tests.crash.rescue, config.celery
    for module in _LAZY:
        import_module(module)
    config.celery.app.finalize()
    assert all(load(name) for name in SCENARIOS)
    gc.collect()
    # A collection in a child would touch, and so copy, every page it shares with this process.
    gc.freeze()
    gc.disable()
    _reply({"ended": "done", "result": "ready"})
    for line in sys.stdin:
        _reply(_in_child(json.loads(line)))


def _reply(reply: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _in_child(job: Job) -> dict[str, Any]:
    read, write = os.pipe()
    before_work = die_with_parent(signal.SIGKILL)
    child = os.fork()
    if child == 0:
        os.close(read)
        if before_work is not None:
            before_work()
        _work(job, write)
    os.close(write)
    report, hung = _read_all(read, child)
    os.close(read)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if hung:
        return {"ended": "error", "result": f"hung for {_HANGS_AFTER:g} s\n{report}"}
    lines = report.splitlines()
    if len(lines) != 1 or code not in (0, KILLED_STATUS, -signal.SIGKILL):
        return {"ended": "error", "result": f"ended with {code}: {report!r}"}
    reply: dict[str, Any] = json.loads(lines[0])
    return reply


def _read_all(read: int, child: int) -> tuple[str, bool]:
    data, deadline = b"", time.monotonic() + _HANGS_AFTER
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            return data.decode(), True
        if not (piece := os.read(read, 65536)):
            return data.decode(), False
        data += piece


def _work(job: Job, report: int) -> Never:
    try:
        reply = {"ended": "done", "result": _do(job, report)}
    except BaseException:  # noqa: BLE001 - whatever it is, the test has to see it
        reply = {"ended": "error", "result": traceback.format_exc()}
    os.write(report, json.dumps(reply).encode() + b"\n")
    os._exit(0)


def _do(job: Job, report: int) -> Any:
    from tests.crash.rescue import rescue
    from tests.crash.scenarios import load
    from tests.crash.stage import Stage

    world = World(**job["world"])
    scenario = load(job["scenario"])()
    stage = Stage(world, scenario.connect)
    match job["phase"]:
        case "set_up":
            _set_up(stage)
        case "rescue":
            found = rescue(scenario, stage, died=job["died"])
            return {"violations": found, "offset_ms": stage.offset_ms}
        case _:
            kill = job["kill"]
            told = kill and Kill(at=kill["at"], when=When(kill["when"]), how=How(kill["how"]))
            killer = Killer(told or None, report)
            watch(killer)
            scenario.arrange(stage)
            killer.arm()
            scenario.act(stage)
            stage.kernel.close()
            return {"commands": killer.count}
    return {"offset_ms": stage.offset_ms}


def _set_up(stage: Any) -> None:
    from django.core.management import call_command

    stage.kernel.ensure_schema()
    call_command("migrate", verbosity=0, interactive=False)


if __name__ == "__main__":
    serve()
