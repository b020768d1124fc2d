"""POST /jobs over HTTP to its 202: the committed business row, and the workflow registered.

The web process is a real uvicorn, the business database SQLite as `make up` has it, the client one
connection that asks for one job after the other, each under a key of its own or without one.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from pathlib import Path

import httpx

from bench.figure import Figure, percentile
from bench.site import Site, fresh_database
from bench.web import WARM_UP, accepts, web_client


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Ask for jobs, and beside it for the two things an answer cannot do without."""
    samples = 100 if quick else 500
    with fresh_database(site) as fresh:
        environment = {**fresh, "BATON_API_RATE": "off"}
        with web_client(environment) as client:
            plain = accepts(client, samples, keyed=False)
            keyed = accepts(client, samples, keyed=True)
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


def _get_live(client: httpx.Client, samples: int) -> list[float]:
    taken = []
    for _ in range(samples + WARM_UP):
        begun = time.perf_counter()
        client.get("/health/live").raise_for_status()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken[WARM_UP:]


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
