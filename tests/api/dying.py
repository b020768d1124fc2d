"""Requests that die between two statements of the business database, and those that repeat them.

`python -m tests.api.dying TOKEN`: for each statement of a request under a fresh key, a forked
child makes the request and is killed right before it, another right after it; two further children
repeat the request. One JSON line a kill goes to standard output, the last says how many there were.

Guarantees that each request runs in a process of its own. Leaves what the answers mean to the test.
"""

import gc
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from signal import SIGKILL
from typing import Any, TypedDict

TOKEN_ENDS_WITH = "done"
_MOST_STATEMENTS = 60


class Outcome(TypedDict):
    """What became of a request: the status and body, or nothing when it died."""

    status: int
    body: str
    replayed: str


def main(token: str) -> None:
    """Kill and repeat until a request outlives its killer; print what the repeats were told."""
    import django

    django.setup()
    _load_everything()
    kills = 0
    for when in ("before", "after"):
        for number in range(1, _MOST_STATEMENTS):
            name = f"{when}-statement-{number:03}"
            first = _in_child(partial(_request, token, name, die_at=(number, when)))
            if first is not None:
                break
            kills += 1
            again = [_in_child(partial(_request, token, name)) for _ in range(2)]
            _say({"name": name, "repeats": again})
    _say({TOKEN_ENDS_WITH: kills})


def _say(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


def _load_everything() -> None:
    """Import once what a request needs, so that a child costs a fork; connect to nothing."""
    from django.test import Client

    import jobs.api.urls
    import jobs.runtime

    assert jobs.api.urls, jobs.runtime
    Client().get("/health/live", headers={"Host": "localhost"})
    gc.freeze()


def _request(token: str, name: str, *, die_at: tuple[int, str] | None = None) -> Outcome:
    from django.db import connection
    from django.test import Client

    client = Client(headers={"Host": "localhost", "Authorization": f"Bearer {token}"})
    body = {"kind": "article", "source_url": f"https://example.org/{name}"}
    key = {"Idempotency-Key": f"the key of {name}".replace(" ", "-")}
    with connection.execute_wrapper(_killer(die_at)):
        answer = client.post("/api/v1/jobs", body, content_type="application/json", headers=key)
    return Outcome(
        status=answer.status_code,
        body=answer.content.decode(),
        replayed=answer.get("Idempotency-Replayed", ""),
    )


def _killer(die_at: tuple[int, str] | None) -> Callable[..., Any]:
    seen = 0

    def run(execute: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal seen
        seen += 1
        if die_at == (seen, "before"):
            os.kill(os.getpid(), SIGKILL)
        result = execute(*arguments)
        if die_at == (seen, "after"):
            os.kill(os.getpid(), SIGKILL)
        return result

    return run


def _in_child(work: Callable[[], Outcome]) -> Outcome | None:
    """Do the work in a forked child; None when it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w") as report:
            report.write(json.dumps(work()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as report:
        text = report.read()
    os.waitpid(child, 0)
    if not text:
        return None
    outcome: Outcome = json.loads(text)
    return outcome


if __name__ == "__main__":
    main(sys.argv[1])
