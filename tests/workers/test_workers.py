"""Jobs through the real web process, broker, workers and beat."""

import http.server
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from jobs.models import ContentJob
from kernel import Kernel
from tests.api.pages import PAGES
from tests.kit.processes import Child, python
from tests.kit.waiting import eventually, never
from tests.workers.garbage import garbage

pytestmark = pytest.mark.timeout(180)

Start = Callable[..., Child]
StartWeb = Callable[..., str]


def post(web: str, token: str, source_url: str) -> str:
    """Post an article and return the job's id."""
    answer = httpx.post(
        f"{web}/api/v1/jobs",
        json={"kind": "article", "source_url": source_url, "metadata": {"$ref": {"$id": 1}}},
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


def read(web: str, token: str, job_id: str) -> dict[str, Any]:
    """Read a job."""
    answer = httpx.get(
        f"{web}/api/v1/jobs/{job_id}",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


def finished(web: str, token: str, job_id: str, within: float = 30) -> dict[str, Any]:
    """Wait for a job's end."""
    open_statuses = {"initial", "generating"}

    def ended() -> dict[str, Any] | None:
        job = read(web, token, job_id)
        return None if job["status"] in open_statuses else job

    job = eventually(ended, within, f"{job_id} never ended")
    assert job is not None
    return job


def test_a_posted_job_is_run_by_a_worker_without_beat(
    start_web: StartWeb, start_worker: Start, token: str, pages: str, kernel: Kernel
) -> None:
    start_worker("content", concurrency=2)
    web = start_web()
    job = finished(web, token, post(web, token, f"{pages}/tides.html"))
    assert job["status"] == "ready", job
    assert job["metadata"] == {"$ref": {"$id": 1}}
    assert job["result"]["summary"]
    assert job["progress"]["done"] == job["progress"]["total"] == 4
    instance = kernel.get(job["workflow_id"])
    assert [step.attempt for step in instance.steps.values()] == [1, 1, 1, 1]


def test_beat_finds_what_the_request_path_could_not_tell_anyone(
    start_web: StartWeb, start_worker: Start, token: str, pages: str, tmp_path: Path
) -> None:
    """The web process has no Redis and no Mongo: intents reach workers by reconcile alone."""
    away = {
        "BATON_MONGO_URL": "mongodb://127.0.0.1:1/?replicaSet=rs0",
        "BATON_REDIS_URL": "redis://127.0.0.1:1/0",
        "BATON_BROKER_URL": "redis://127.0.0.1:1/0",
    }
    web = start_web(**away)
    job_id = post(web, token, f"{pages}/tea.html")
    assert ContentJob.objects.get(pk=job_id).dispatch_status == "pending"
    start_worker("content")
    start_worker("control", "-B", "-s", str(tmp_path / "schedule"))
    eventually(
        lambda: ContentJob.objects.get(pk=job_id).status == "ready",
        75,
        "the job was never found",
    )


def test_garbage_in_the_queue_stops_nobody(
    start_web: StartWeb,
    start_worker: Start,
    token: str,
    pages: str,
    redis_client: Redis,
    key_prefix: str,
) -> None:
    worker = start_worker("content")
    queue = f"{key_prefix}:celery:content"
    for raw in garbage():
        redis_client.lpush(queue, raw)
    web = start_web()
    job_id = post(web, token, f"{pages}/bridges.html")
    try:
        job = finished(web, token, job_id)
    except AssertionError as late:
        raise AssertionError("\n".join(["the worker said:", *worker.lines[-20:]])) from late
    assert job["status"] == "ready"
    eventually(lambda: redis_client.llen(queue) == 0, 20, "the queue was never emptied")
    eventually(
        lambda: redis_client.hlen(f"{key_prefix}:celery:unacked") == 0, 20, "a message is held"
    )
    assert worker.process.poll() is None
    assert "message set aside" in worker.output
    assert "wakeup for an unknown queue dropped" in worker.output


class HeldPage:
    """A page whose answer is held back until the test lets it go."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()
        held = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                held.asked.set()
                held.released.wait(60)
                body = (PAGES / "tea.html").read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/page"
        serve = self.server.serve_forever
        self.thread = threading.Thread(target=serve, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Let everything go."""
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def held_page() -> Iterator[HeldPage]:
    """A page that answers when the test says so."""
    page = HeldPage()
    yield page
    page.close()


def test_a_worker_told_to_stop_finishes_its_step_and_leaves_the_rest_to_others(
    start_web: StartWeb,
    start_worker: Start,
    token: str,
    pages: str,
    held_page: HeldPage,
    kernel: Kernel,
) -> None:
    stopped = start_worker("content")
    web = start_web()
    first = post(web, token, held_page.url)
    assert held_page.asked.wait(30)
    others = [post(web, token, f"{pages}/tea.html") for _ in range(5)]
    stopped.send(signal.SIGTERM)
    stopped.wait_for_line("Warm shutdown")
    never(lambda: stopped.process.poll() is not None, 1.0, "it left in the middle of a step")
    held_page.released.set()
    assert stopped.wait(40) == 0
    assert "Traceback" not in stopped.output
    handed_back = kernel.get(read(web, token, first)["workflow_id"])
    assert handed_back.steps["fetch_page"].status == "completed"
    assert handed_back.steps["compose"].attempt == 0
    assert handed_back.claim_token is None
    assert {read(web, token, job)["status"] for job in others} == {"initial"}

    start_worker("content")
    for job_id in (first, *others):
        job = finished(web, token, job_id)
        assert job["status"] == "ready"
        assert [step["attempt"] for step in job["progress"]["steps"]] == [1, 1, 1, 1]


def test_logs_are_one_json_object_a_line(stack_env: dict[str, str]) -> None:
    code = (
        "import django, logging, structlog; django.setup();"
        "structlog.contextvars.bind_contextvars(request_id='r1');"
        "logging.getLogger('x').warning('plain %s', 1, extra={'lone': '\\ud800'});"
        "structlog.get_logger('y').info('structured', n=1)"
    )
    with python("-c", code, env=stack_env) as child:
        assert child.wait() == 0
        plain, structured = (httpx.Response(200, text=line).json() for line in child.lines[-2:])
    assert (plain["event"], plain["level"], plain["request_id"]) == ("plain 1", "warning", "r1")
    assert (structured["event"], structured["n"], structured["logger"]) == ("structured", 1, "y")
