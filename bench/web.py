"""A real web process of a measurement's own, and a client that asks it for jobs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from signal import SIGKILL, SIGTERM

import httpx

from bench.children import ROOT
from config.embedded.process import die_with_parent

#: Requests before the measured ones.
WARM_UP = 20
_PREPARE = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from jobs.services.access import issue_token
call_command("migrate", verbosity=0)
call_command("ensure_schema", verbosity=0)
user, _ = User.objects.get_or_create(username="bench")
print(issue_token(user=user, tenant="bench", name="bench").raw)
"""


@contextmanager
def web_client(environment: Mapping[str, str]) -> Iterator[httpx.Client]:
    """Make the schemas, run a web process until the block ends, and give a client with a token."""
    done = _python(environment, "-c", _PREPARE)
    headers = {"Authorization": f"Bearer {done.stdout.split()[-1]}"}
    with (
        _web(environment) as url,
        httpx.Client(base_url=url, headers=headers, timeout=30) as client,
    ):
        yield client


def accepts(
    client: httpx.Client, samples: int, *, keyed: bool = False, warm_up: int = WARM_UP
) -> list[float]:
    """Ask for jobs, one after the other; return the milliseconds to each 202, warm."""
    body = {"kind": "article", "source_url": "https://example.org/story"}
    taken = []
    for _ in range(samples + warm_up):
        headers = {"Idempotency-Key": str(uuid.uuid4())} if keyed else {}
        begun = time.perf_counter()
        answer = client.post("/api/v1/jobs", json=body, headers=headers)
        taken.append((time.perf_counter() - begun) * 1000)
        if answer.status_code != 202:
            raise RuntimeError(f"{answer.status_code}: {answer.text}")
    return taken[warm_up:]


@contextmanager
def _web(environment: Mapping[str, str]) -> Iterator[str]:
    """Run the web process until the block ends; give its address."""
    command = ("-m", "uvicorn", "config.asgi:application", "--port", "0", "--no-access-log")
    child = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent(SIGKILL),  # noqa: PLW1509 - no thread of ours holds locks then
    )
    assert child.stderr is not None
    try:
        for line in child.stderr:
            if found := re.search(r"running on (http://[0-9.:]+)", line):
                yield found[1]
                break
        else:
            raise RuntimeError("the web process ended before it served")
    finally:
        child.send_signal(SIGTERM)
        child.wait(30)
        child.stderr.close()


def _python(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
