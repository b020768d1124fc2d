"""The example clients of the documentation run against the real API, to the end of a real job."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.models import ContentJob
from jobs.worker import register_definitions
from kernel import Kernel
from tests.api.callers import Caller
from tests.api.serving import Server
from tests.kit.processes import ROOT, Child

CLIENTS = ROOT / "docs" / "clients"
PROGRAMS = {"job.sh": ["sh"], "job.py": [sys.executable]}


@pytest.fixture
def worker(kernel: Kernel, settings: Settings) -> Iterator[None]:
    """Work on the content queue beside the test."""
    settings.BATON_FETCH_ALLOW_PRIVATE = True
    register_definitions(kernel)
    stopped = threading.Event()

    def work() -> None:
        while not stopped.wait(0.05):
            kernel.drain(queues=["content"])

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopped.set()
    thread.join()


def test_every_example_is_run() -> None:
    assert {file.name for file in Path(CLIENTS).iterdir()} == set(PROGRAMS)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_example_makes_one_job_and_prints_its_summary(
    acme: Caller, server: Server, pages: str, worker: None, name: str
) -> None:
    env = {"BATON_URL": server.url, "BATON_TOKEN": acme.token}
    command = [*PROGRAMS[name], str(CLIENTS / name), f"{pages}/tea.html", "key-of-this-example"]
    for _ in range(2):
        with Child(command, env=env) as child:
            assert child.wait(60) == 0, child.output
        job = ContentJob.objects.get()
        assert job.result is not None
        assert child.output.strip() == str(job.result["summary"]).strip()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_example_says_why_a_request_is_refused(acme: Caller, server: Server, name: str) -> None:
    env = {"BATON_URL": server.url, "BATON_TOKEN": acme.token}
    with Child([*PROGRAMS[name], str(CLIENTS / name), "ftp://x"], env=env) as child:
        assert child.wait(60) != 0
    assert "/problems/validation" in child.output, server.said
