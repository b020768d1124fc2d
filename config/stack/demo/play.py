"""Set the stage for the demonstration, play its acts, and clear everything away.

Guarantees that servers and processes are stopped and the folder is gone whatever happened; after a
failure the last words of each process are shown first.
Leaves the acts to `acts`.
"""

import contextlib
import secrets
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from pymongo import MongoClient

from config.stack.demo import acts, listening, live
from config.stack.demo.checks import DemoFailed, await_that, insist
from config.stack.demo.client import JobsClient
from config.stack.demo.pages import PageServer
from config.stack.services import WORK_QUEUES, StackOptions
from config.stack.stack import Stack
from config.stack.supervisor import Supervisor
from config.stack.terminal import Terminal
from kernel import Kernel, KernelConfig

#: Seconds of a claim's lease: short, so that the wait for the dead worker's claim is.
LEASE_SECONDS = 4
#: Queues whose worker is killed have another one.
_WORKERS = {"content": 2, "media": 2}
_READY_TIMEOUT = 90.0
_STOP_TIMEOUT = 90.0


def play(terminal: Terminal) -> None:
    """Play every act on a stack of their own. Raises: DemoFailed, and what `Stack` raises."""
    with tempfile.TemporaryDirectory(prefix="baton-demo-") as folder:
        database = f"demo_{secrets.token_hex(6)}"
        options = StackOptions(
            data_dir=Path(folder),
            workers_of=_WORKERS,
            speech_faults=True,
            flower=False,
            env=_environment(database),
        )
        stack = Stack(options, terminal=terminal)
        try:
            access = stack.prepare()
            with (
                _forgotten(stack.env["BATON_MONGO_URL"], database),
                PageServer() as pages,
                _running(stack, terminal) as supervisor,
                JobsClient(stack.web_url, access.token) as client,
                _kernel(stack.env["BATON_MONGO_URL"], database) as kernel,
            ):
                stage = acts.Stage(
                    terminal=terminal,
                    client=client,
                    pages=pages,
                    kernel=kernel,
                    supervisor=supervisor,
                    workers=tuple(name for q in WORK_QUEUES for name in options.worker_names(q)),
                    speech_url=stack.speech_url,
                    tenant=access.tenant,
                )
                acts.articles_become_summaries(stage)
                acts.another_worker_carries_on(stage)
                listening.another_worker_asks_on(stage)
                live.an_event_wakes_its_subscribers(stage)
                terminal.say()
        finally:
            stack.close()


def _environment(database: str) -> dict[str, str]:
    """Return settings that keep the demonstration apart from everything else, and offline."""
    return {
        "BATON_DATABASE": database,
        "BATON_KEY_PREFIX": database,
        "BATON_DATABASE_URL": "",
        "BATON_LEASE_SECONDS": str(LEASE_SECONDS),
        "BATON_FETCH_ALLOW_PRIVATE": "1",
        "BATON_LLM_URL": "",
        "BATON_SPEECH_URL": "",
        "BATON_PUBLIC_URL": "",
        "BATON_TYPES_OFF": "",
        "BATON_CLOCK_OFFSET_MS": "0",
        "BATON_ALLOWED_HOSTS": "127.0.0.1",
    }


@contextlib.contextmanager
def _running(stack: Stack, terminal: Terminal) -> Iterator[Supervisor]:
    """Run the stack's processes in a thread of their own; stop them and wait for their end."""
    supervisor = stack.supervisor()
    thread = threading.Thread(target=supervisor.run, name="supervisor")
    thread.start()
    try:
        await_that(
            lambda: _all_ready(supervisor),
            seconds=_READY_TIMEOUT,
            otherwise="not every process got ready",
        )
        terminal.say(f"everything is up: API at {stack.web_url}/api/v1/")
        yield supervisor
    except DemoFailed:
        for name in supervisor.names:
            for line in supervisor.last_lines(name):
                terminal.event(name, line)
        raise
    finally:
        supervisor.request_stop()
        thread.join(_STOP_TIMEOUT)


def _all_ready(supervisor: Supervisor) -> bool:
    """Say whether every process is ready. Raises: DemoFailed, when one ends instead."""
    for name in supervisor.names:
        insist(not supervisor.restarts(name), f"{name} ended while the stack was starting")
    return not supervisor.unready()


@contextlib.contextmanager
def _kernel(mongo_url: str, database: str) -> Iterator[Kernel]:
    """Give a kernel for reading the stored facts."""
    kernel = Kernel.connect(KernelConfig(mongo_url=mongo_url, database=database))
    try:
        yield kernel
    finally:
        kernel.close()


@contextlib.contextmanager
def _forgotten(mongo_url: str, database: str) -> Iterator[None]:
    """Drop the demonstration's database afterwards: the server may be one of the user's own."""
    try:
        yield
    finally:
        with MongoClient[dict[str, object]](mongo_url) as client:
            client.drop_database(database)
