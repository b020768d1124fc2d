"""The processes of a Baton deployment as the dev stack runs them, and where they listen.

Guarantees the same commands as `docker-compose.yml`: one worker a queue, one for `control`, beat,
web, the speech service and Flower. Leaves running them to `supervisor`, the servers to `stack`.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.embedded import ports
from config.stack.spec import ProcessSpec

#: Queues of the workflows, each with a worker of its own.
WORK_QUEUES = ("content", "media", "distribution")
#: Queue of the clockwork: tick and reconcile.
CONTROL_QUEUE = "control"

WEB_PORT = 8000
FLOWER_PORT = 5555
SPEECH_PORT = 8090

#: Seconds a worker may take to finish the steps it runs.
WORKER_STOP_TIMEOUT = 40.0

#: When each is stopped, in this order.
_BEAT_STAGE, WORKER_STAGE, _SPEECH_STAGE, _FLOWER_STAGE, _WEB_STAGE = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the caller may choose."""

    data_dir: Path
    #: Port of the web process; None takes the usual one or, if taken, any free one.
    web_port: int | None = None
    flower_port: int | None = None
    flower: bool = True
    #: Pool processes of each work queue's worker.
    concurrency: int = 2
    #: Workers a work queue, and of queues that have another number.
    workers: int = 1
    workers_of: Mapping[str, int] = field(default_factory=dict)
    #: Let clients of the speech service switch its faults; demonstrations and tests only.
    speech_faults: bool = False
    #: Added to the environment of every process, over everything else.
    env: Mapping[str, str] = field(default_factory=dict)

    def worker_names(self, queue: str) -> tuple[str, ...]:
        """Return the names of a queue's workers."""
        count = self.workers_of.get(queue, self.workers)
        return tuple(worker_name(queue, number) for number in range(1, count + 1))


def choose_port(wanted: int | None, usual: int) -> int:
    """Return the port asked for, else the usual one if free, else any free one."""
    if wanted is not None:
        return wanted
    return usual if ports.is_free(usual) else ports.free_port()


def web(port: int, env: Mapping[str, str]) -> ProcessSpec:
    """The API and the console under uvicorn."""
    options = ("--host", ports.HOST, "--port", str(port), "--lifespan", "off")
    return ProcessSpec(
        name="web",
        # Open streams would hold a plain shutdown up for ever.
        command=(
            *(sys.executable, "-m", "uvicorn", "config.asgi:application", *options),
            *("--timeout-graceful-shutdown", "2", "--no-access-log"),
        ),
        env=env,
        ready_pattern="Uvicorn running on",
        stop_stage=_WEB_STAGE,
    )


def worker_name(queue: str, number: int) -> str:
    """Name one of a queue's workers."""
    return queue if number == 1 else f"{queue}-{number}"


def worker(queue: str, *, concurrency: int, env: Mapping[str, str], number: int = 1) -> ProcessSpec:
    """A Celery worker for one queue; `number` tells several of them apart."""
    name = worker_name(queue, number)
    return ProcessSpec(
        name=name,
        command=(
            *_celery("worker", "-Q", queue, "-n", f"{name}@%h", "-c", str(concurrency)),
            *("--without-gossip", "--without-mingle", "--task-events", "--loglevel", "INFO"),
        ),
        env=env,
        ready_pattern=r"\bready\.",
        stop_stage=WORKER_STAGE,
        stop_timeout=WORKER_STOP_TIMEOUT,
    )


def speech(port: int, data_dir: Path, *, faults: bool, env: Mapping[str, str]) -> ProcessSpec:
    """The speech recognition service."""
    options = ("--port", str(port), "--folder", str(data_dir / "speech"))
    return ProcessSpec(
        name="speech",
        command=(
            *(sys.executable, "manage.py", "speech_service", *options),
            *(("--faults",) if faults else ()),
        ),
        env=env,
        ready_pattern="speech service listens",
        stop_stage=_SPEECH_STAGE,
    )


def beat(data_dir: Path, env: Mapping[str, str]) -> ProcessSpec:
    """The clock that rings tick and reconcile."""
    schedule = data_dir / "celerybeat-schedule"
    return ProcessSpec(
        name="beat",
        command=_celery("beat", "--schedule", str(schedule), "--pidfile=", "--loglevel", "INFO"),
        env=env,
        stop_stage=_BEAT_STAGE,
    )


def flower(
    port: int, auth: str, env: Mapping[str, str], *, after: tuple[str, ...] = ()
) -> ProcessSpec:
    """Celery's own monitor, behind basic auth; it asks the workers `after` which it starts."""
    return ProcessSpec(
        name="flower",
        command=_celery("flower", f"--address={ports.HOST}", f"--port={port}", "--logging=error"),
        # In the environment, not on the command line, where every local user could read it.
        env={**env, "FLOWER_BASIC_AUTH": auth},
        start_after=after,
        stop_stage=_FLOWER_STAGE,
        # It keeps nothing, and questions to workers that have gone would hold it up.
        stop_timeout=3.0,
    )


def _celery(*arguments: str) -> tuple[str, ...]:
    # Without banners: six processes share one terminal.
    return (sys.executable, "-m", "celery", "-A", "config", "-q", *arguments)
