"""Live events and callbacks over HTTP."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import ProviderCallback
from jobs.services import callbacks
from kernel import Kernel
from tests.api.callers import Caller, caller, slug_of

pytestmark = pytest.mark.django_db(transaction=True)

WORKFLOW = "wf_" + "0" * 32


@pytest.fixture
def acme(serving: Kernel) -> Caller:
    """A caller of the tenant `acme`."""
    return caller("acme")


def announced(acme: Caller, title: str = "A talk") -> dict[str, Any]:
    answer = acme.post("live-events", {"title": title})
    assert answer.status_code == 201, answer.content
    event: dict[str, Any] = answer.json()
    assert answer["Location"] == event["links"]["self"]
    return event


def test_an_event_is_announced_started_and_ended(acme: Caller) -> None:
    event = announced(acme)
    assert set(event["links"]) == {"self", "start", "end", "cancel"}
    assert acme.post(event["links"]["start"]).json()["status"] == "live"
    body = {"recording_url": "https://example.org/talk.wav"}
    ended = acme.post(event["links"]["end"], body)
    assert (ended.status_code, ended.json()["status"]) == (200, "ended")
    assert acme.post(event["links"]["end"], body).json() == ended.json()
    read = acme.get(event["links"]["self"]).json()
    assert read["recording_url"] == body["recording_url"]
    assert set(read["links"]) == {"self"}
    assert slug_of(acme.post(event["links"]["cancel"])) == "event-closed"


def test_events_are_listed_page_by_page_and_by_tenant(acme: Caller) -> None:
    made = [announced(acme, f"Talk {number}")["id"] for number in range(5)]
    seen, address = [], "live-events?limit=2"
    while address:
        page = acme.get(address).json()
        seen += [event["id"] for event in page["results"]]
        address = page["next"]
    assert seen == made[::-1]
    other = caller("globex")
    assert other.get("live-events").json()["results"] == []
    assert slug_of(other.get(f"live-events/{made[0]}")) == "not-found"
    assert slug_of(other.post(f"live-events/{made[0]}/cancel")) == "not-found"
    assert slug_of(acme.get("live-events?limit=0")) == "bad-filter"
    assert slug_of(acme.get("live-events?status=live")) == "bad-filter"


@pytest.mark.parametrize(
    "body",
    [{}, {"title": ""}, {"title": 3}, {"title": "x" * 301}, {"title": "x", "extra": 1}, []],
    ids=["nothing", "empty", "number", "long", "extra", "list"],
)
def test_what_is_no_event_is_refused(acme: Caller, body: object) -> None:
    assert slug_of(acme.post("live-events", body)) == "validation"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"kind": "live"}, "/options/live_event"),
        ({"kind": "live", "options": {"live_event": "live_none"}}, "/options/live_event"),
        ({"kind": "live", "options": {"live_event": ""}}, "/options/live_event"),
        ({"kind": "digest", "source_url": "https://example.org/"}, "/options/audio_url"),
        ({"kind": "audio"}, "/source_url"),
        (
            {
                "kind": "audio",
                "source_url": "https://example.org/a.wav",
                "options": {"audio_url": "https://example.org/b.wav"},
            },
            "/options/audio_url",
        ),
        (
            {
                "kind": "digest",
                "source_url": "https://example.org/",
                "options": {"audio_url": "https://example.org/b.wav", "live_event": "live_x"},
            },
            "/options/audio_url",
        ),
    ],
)
def test_a_job_says_where_its_recording_is(acme: Caller, fields: Any, pointer: str) -> None:
    answer = acme.post("jobs", fields)
    assert slug_of(answer) == "validation"
    assert pointer in [place["pointer"] for place in answer.json()["errors"]]


def token_address(provider: str = "service", wait_key: str = "key-1") -> str:
    return callbacks.address(
        "http://testserver",
        provider=provider,
        workflow_id=WORKFLOW,
        wait_key=wait_key,
        generation=1,
    )


def call_back(address: str, body: bytes = b'{"id": "t1", "state": "succeeded"}') -> Any:
    client = Client(raise_request_exception=False)
    return client.post(address, body, content_type="application/json")


def test_a_callback_is_stored_before_it_rings_and_repeats_are_harmless(serving: Kernel) -> None:
    address = token_address()
    first = call_back(address)
    assert (first.status_code, first.json()) == (202, {"stored": True})
    again = call_back(address, b'{ "state":"succeeded", "id":"t1" }')
    assert (again.status_code, again.json()) == (202, {"stored": False})
    another = call_back(address, b'{"id": "t1", "state": "running"}')
    assert another.json() == {"stored": True}
    rows = ProviderCallback.objects.order_by("id")
    assert [(row.provider, row.workflow_id) for row in rows] == [("service", WORKFLOW)] * 2
    assert rows[0].body == {"id": "t1", "state": "succeeded"}


def test_a_wrong_token_is_no_address(serving: Kernel) -> None:
    good = token_address()
    head, _, token = good.rpartition("/")
    for address in (
        f"{head}/{token[:-1]}",
        f"{head}/{'A' + token}",
        f"{head}/x",
        f"{head}/%00",
        good.replace("/service/", "/other/"),
        good.replace("/service/", "/%F0%9F%92%A3/"),
    ):
        assert slug_of(call_back(address)) == "not-found"
    assert not ProviderCallback.objects.exists()


def test_what_is_said_is_bounded(serving: Kernel) -> None:
    address = token_address()
    assert slug_of(call_back(address, b"[1]")) == "validation"
    assert slug_of(call_back(address, b"{")) == "malformed-json"
    long = b'{"x": "' + b"y" * 20_000 + b'"}'
    assert slug_of(call_back(address, long)) == "value-too-large"
    for number in range(callbacks.BODIES_MAX + 5):
        assert call_back(address, b'{"n": %d}' % number).status_code == 202
    assert ProviderCallback.objects.count() == callbacks.BODIES_MAX
