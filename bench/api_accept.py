"""POST /jobs over HTTP to its 202: the committed business row, and the workflow registered.

The web process is a real uvicorn, the business database SQLite as `make up` has it, the client one
connection that asks for one job after the other, each under a key of its own or without one.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM

import httpx

from bench.children import ROOT
from bench.figure import Figure, percentile
from bench.site import Site, fresh_database
from config.embedded.process import die_with_parent

_WARM_UP = 20
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


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Ask for jobs, and beside it for the two things an answer cannot do without."""
    samples = 100 if quick else 500
    with fresh_database(site) as fresh:
        environment = {**fresh, "BATON_API_RATE": "off"}
        done = _python(environment, "-c", _PREPARE)
        token = done.stdout.split()[-1]
        with _web(environment) as url:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
                plain = _post(client, samples, keyed=False)
                keyed = _post(client, samples, keyed=True)
                read = _get_live(client, samples)
    insert = _inserts(site.data_dir / "bare.sqlite3", samples)
    lines = (
        ("API accept, p50", plain, 50, "p50 <= 15 ms"),
        ("API accept, p99", plain, 99, ""),
        ("API accept with a key, p50", keyed, 50, "p50 <= 15 ms"),
        ("API accept with a key, p99", keyed, 99, ""),
    )
    return [
        Figure(
            name=name,
            value=percentile(values, percent),
            unit="ms",
            raw_name=f"empty HTTP answer + durable SQLite insert, p{percent}",
            raw=percentile(read, percent) + percentile(insert, percent),
            aim=aim,
            note=f"{samples} samples",
        )
        for name, values, percent, aim in lines
    ]


def _post(client: httpx.Client, samples: int, *, keyed: bool) -> list[float]:
    body = {"kind": "article", "source_url": "https://example.org/story"}
    taken = []
    for _ in range(samples + _WARM_UP):
        headers = {"Idempotency-Key": str(uuid.uuid4())} if keyed else {}
        begun = time.perf_counter()
        answer = client.post("/api/v1/jobs", json=body, headers=headers)
        taken.append((time.perf_counter() - begun) * 1000)
        if answer.status_code != 202:
            raise RuntimeError(f"{answer.status_code}: {answer.text}")
    return taken[_WARM_UP:]


def _get_live(client: httpx.Client, samples: int) -> list[float]:
    taken = []
    for _ in range(samples + _WARM_UP):
        begun = time.perf_counter()
        client.get("/health/live").raise_for_status()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken[_WARM_UP:]


def _inserts(path: Path, samples: int) -> list[float]:
    """Insert rows as durably as the business database does."""
    taken = []
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE bare (id TEXT PRIMARY KEY, body TEXT)")
        for _ in range(samples):
            begun = time.perf_counter()
            database.execute("INSERT INTO bare VALUES (?, ?)", (uuid.uuid4().hex, "x" * 1000))
            taken.append((time.perf_counter() - begun) * 1000)
    finally:
        database.close()
    return taken


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
