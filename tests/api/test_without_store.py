"""Every call of the API while MongoDB is dead: it does its work, or says when to come again.

Guarantees under test: what docs/openapi.yaml describes is answered within a bound, never by a 500,
and what is accepted is kept. The calls are meant to succeed: their jobs, events and choices exist.
"""

import json
import time
from collections.abc import Callable, Iterator

import pytest
import yaml
from django.db import connection

from jobs.dispatch import relay
from jobs.models import ContentJob, JobChoice, LiveEvent
from jobs.runtime import get_kernel, using_kernel
from jobs.services import access, callbacks, content
from kernel import Kernel, KernelConfig
from tests.api.callers import ARTICLE, Caller, slug_of
from tests.kit.processes import ROOT

#: Nothing listens there.
NOBODY = "mongodb://127.0.0.1:1/?replicaSet=rs0"
#: Seconds a call may take that is the first to find MongoDB away; the store's own limit is 3 s.
BOUND = 2.5

#: A call that is meant to succeed: method, address, body.
Call = tuple[str, str, object]


def job_in(acme: Caller, status: str = "initial") -> str:
    """Submit a job and put it into a status, as its workflow would have."""
    job_id = str(acme.submit()["id"])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_contentjob SET status = %s WHERE id = %s", [status, job_id])
    return job_id


def choosing(acme: Caller) -> str:
    job_id = job_in(acme, "generating")
    JobChoice.objects.create(
        job_id=job_id, round=1, candidates=[{"option": "a", "summary": "", "sentences": []}]
    )
    return job_id


def event(acme: Caller, status: str = "scheduled") -> str:
    event_id = str(acme.post("live-events", {"title": "A talk"}).json()["id"])
    LiveEvent.objects.filter(pk=event_id).update(status=status)
    return event_id


def operators_token(acme: Caller) -> str:
    return access.issue_token(user=acme.user, name="night", ops=True).raw


def callback_address() -> str:
    return callbacks.address(
        "http://testserver", provider="service", workflow_id="wf_" + "0" * 32,
        wait_key="key", generation=1,
    )  # fmt: skip


RECORDING = {"recording_url": "https://example.org/talk.wav"}
WHY = {"reason": "the provider asked"}
#: Each arranges what its call is about.
CALLS: dict[str, Callable[[Caller], Call]] = {
    "callbacks_receive": lambda _: ("POST", callback_address(), {"state": "succeeded"}),
    "capacity_list": lambda _: ("GET", "capacity", None),
    "capacity_retrieve": lambda _: ("GET", "capacity/psp", None),
    "capacity_limit": lambda _: ("PATCH", "capacity/psp", {"max_concurrency": 1, **WHY}),
    "capacity_pause": lambda _: ("POST", "capacity/psp/pause", WHY),
    "capacity_resume": lambda _: ("POST", "capacity/psp/resume", WHY),
    "capacity_cooldown": lambda _: ("POST", "capacity/psp/cooldown", {"seconds": 5, **WHY}),
    "jobs_list": lambda _: ("GET", "jobs", None),
    "jobs_create": lambda _: ("POST", "jobs", ARTICLE),
    "jobs_retrieve": lambda acme: ("GET", f"jobs/{job_in(acme)}", None),
    "jobs_delete": lambda acme: ("DELETE", f"jobs/{job_in(acme, 'ready')}", None),
    "jobs_cancel": lambda acme: ("POST", f"jobs/{job_in(acme)}/cancel", None),
    "jobs_choice": lambda acme: ("GET", f"jobs/{choosing(acme)}/choice", None),
    "jobs_choose": lambda acme: ("POST", f"jobs/{choosing(acme)}/choose", {"option": "a"}),
    "jobs_regenerate": lambda acme: ("POST", f"jobs/{job_in(acme, 'ready')}/regenerate", None),
    "jobs_retry": lambda acme: ("POST", f"jobs/{job_in(acme, 'failed')}/retry", None),
    "live_events_list": lambda _: ("GET", "live-events", None),
    "live_events_create": lambda _: ("POST", "live-events", {"title": "A talk"}),
    "live_events_retrieve": lambda acme: ("GET", f"live-events/{event(acme)}", None),
    "live_events_cancel": lambda acme: ("POST", f"live-events/{event(acme)}/cancel", None),
    "live_events_end": lambda acme: ("POST", f"live-events/{event(acme, 'live')}/end", RECORDING),
    "live_events_start": lambda acme: ("POST", f"live-events/{event(acme)}/start", None),
    "tokens_rotate": lambda _: ("POST", "tokens/rotate", None),
}


def described() -> list[str]:
    schema = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text("utf-8"))
    return [call["operationId"] for path in schema["paths"].values() for call in path.values()]


@pytest.fixture
def dead(acme: Caller) -> Iterator[None]:
    """Put a kernel whose MongoDB is dead behind the API, which knows of it at first."""
    kernel = Kernel.connect(KernelConfig(mongo_url=NOBODY, database="nowhere"))
    relay.breaker.failed()
    with using_kernel(kernel):
        yield
    kernel.close()
    relay.breaker.succeeded()


def test_every_described_call_is_made_here() -> None:
    assert set(CALLS) == set(described())


@pytest.mark.parametrize("name", CALLS)
def test_a_call_succeeds_or_says_when_to_come_again(acme: Caller, dead: None, name: str) -> None:
    method, path, body = CALLS[name](acme)
    headers = {}
    if name.startswith("capacity"):
        acme = Caller(tenant="", user=acme.user, token=operators_token(acme))
        headers = {"If_Match": '"0"'}
    relay.breaker.succeeded()  # so that it is this call that finds out
    begun = time.monotonic()
    answer = acme.call(method, path, b"" if body is None else json.dumps(body).encode(), **headers)
    assert time.monotonic() - begun < BOUND
    if answer.status_code >= 300:
        assert slug_of(answer) == "unavailable"
        assert int(answer["Retry-After"]) > 0


def test_what_needs_the_store_says_when_to_come_again(
    acme: Caller, dead: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call does today; one that will is answered by the same table."""

    def needs_it(*_: object, **__: object) -> object:
        return get_kernel().get("wf_" + "0" * 32)

    monkeypatch.setattr(content, "list_jobs", needs_it)
    answer = acme.get("jobs")
    assert slug_of(answer) == "unavailable"
    assert answer["Retry-After"] == "5"


def test_what_is_accepted_meanwhile_is_kept(acme: Caller, dead: None) -> None:
    job = ContentJob.objects.get(pk=acme.submit()["id"])
    assert (job.status, job.dispatch_status) == ("initial", "pending")
    assert acme.job(job.pk)["waiting"]["reason"] == "unknown"
