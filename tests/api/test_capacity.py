"""Capacity for operators: who gets in, what a change needs, and what it does."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pymongo import MongoClient

from jobs.dispatch import relay
from jobs.models import ApiToken
from jobs.plans import ARTICLE
from jobs.runtime import using_kernel
from jobs.services import access, content
from kernel import ActivityContext, Definition, Kernel, KernelConfig, Step
from tests.api.callers import Caller, slug_of

WHY = {"reason": "the provider asked"}


@pytest.fixture
def ops(kernel: Kernel, transactional_db: None) -> Caller:
    """A caller with a token of the operators."""
    user = User.objects.create_user("operator")
    issued = access.issue_token(user=user, name="night", ops=True)
    return Caller(tenant="", user=user, token=issued.raw)


def read(ops: Caller, resource: str = "psp") -> Any:
    answer = ops.get(f"capacity/{resource}")
    assert answer.status_code == 200, answer.content
    return answer


def change(ops: Caller, path: str, body: Any, *, match: str | None = None) -> Any:
    """PATCH a resource, or POST one of its verbs, on what was read just now."""
    resource, _, verb = path.partition("/")
    tag = read(ops, resource)["ETag"] if match is None else match
    method = "POST" if verb else "PATCH"
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ops.call(method, f"capacity/{path}", raw, If_Match=tag)


def test_a_limit_is_changed_on_the_revision_that_was_read(ops: Caller, kernel: Kernel) -> None:
    first = read(ops)
    assert (first["ETag"], first.json()["max_concurrency"]) == ('"0"', None)
    answer = change(ops, "psp", {"max_concurrency": 8, "max_starts_per_second": 2.5, **WHY})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["max_concurrency"], body["max_starts_per_second"]) == (8, 2.5)
    assert answer["ETag"] == f'"{body["revision"]}"' != first["ETag"]
    assert answer["Cache-Control"] == "no-store"
    entry = body["history"][0]
    assert entry["reason"] == WHY["reason"]
    token = ApiToken.objects.get(ops=True)
    assert entry["by"] == f"operator (token {token.pk})"
    status = kernel.capacity.status("psp")
    assert (status.max_concurrency, status.max_starts_per_second) == (8, 2.5)
    partial = change(ops, "psp", {"max_concurrency": None, **WHY}).json()
    assert (partial["max_concurrency"], partial["max_starts_per_second"]) == (None, 2.5)


def test_the_slower_of_two_operators_is_told(ops: Caller, kernel: Kernel) -> None:
    tag = read(ops)["ETag"]
    assert change(ops, "psp", {"max_concurrency": 8, **WHY}, match=tag).status_code == 200
    late = change(ops, "psp", {"max_concurrency": 1, **WHY}, match=tag)
    assert slug_of(late) == "precondition-failed"
    assert late["ETag"] == read(ops)["ETag"] == f'"{late.json()["revision"]}"'
    assert kernel.capacity.status("psp").max_concurrency == 8
    for tag in ('"99"', 'W/"1"', '"1-x"', '"01"'):
        assert slug_of(change(ops, "psp/pause", WHY, match=tag)) == "precondition-failed"
    assert not kernel.capacity.status("psp").paused


@pytest.mark.parametrize("path", ["psp", "psp/pause", "psp/resume", "psp/cooldown"])
def test_a_change_must_say_what_it_is_based_on(ops: Caller, path: str) -> None:
    bodies = {"psp": {"max_concurrency": 1}, "psp/cooldown": {"seconds": 1}}
    body = {**bodies.get(path, {}), **WHY}
    assert slug_of(change(ops, path, body, match="")) == "precondition-required"
    assert slug_of(change(ops, path, body, match="*")) == "precondition-required"
    assert slug_of(change(ops, path, body, match="0")) == "bad-request"
    assert slug_of(change(ops, path, body, match='"0", "1"')) == "bad-request"
    assert read(ops).json()["revision"] == 0


def test_pause_cooldown_and_resume_are_seen(ops: Caller) -> None:
    assert change(ops, "psp/pause", WHY).json()["paused"] is True
    assert change(ops, "psp/resume", WHY).json()["paused"] is False
    closed = change(ops, "psp/cooldown", {"seconds": 60, **WHY}).json()
    assert closed["cooldown_until"] > closed["now"]
    assert closed["next_start_at"] == closed["cooldown_until"]
    over = change(ops, "psp", {"max_concurrency": 2, "expires_in": 600, **WHY}).json()
    assert over["override_until"] > over["now"]
    assert len(over["history"]) == 4


BAD_BODIES: list[tuple[str, Any]] = [
    ("psp", {"max_concurrency": 1}),
    ("psp", {"max_concurrency": 1, "reason": ""}),
    ("psp", {"max_concurrency": 1, "reason": " \n"}),
    ("psp", {"max_concurrency": 1, "reason": None}),
    ("psp", {"max_concurrency": 1, "reason": 7}),
    ("psp", {"max_concurrency": 1, "reason": "x" * 501}),
    ("psp", WHY),
    ("psp", {"max_concurency": 1, **WHY}),
    ("psp", {"max_concurrency": -1, **WHY}),
    ("psp", {"max_concurrency": True, **WHY}),
    ("psp", {"max_concurrency": "8", **WHY}),
    ("psp", {"max_concurrency": 1.5, **WHY}),
    ("psp", {"max_concurrency": 10**9, **WHY}),
    ("psp", {"max_starts_per_second": -0.5, **WHY}),
    ("psp", {"max_starts_per_second": True, **WHY}),
    ("psp", {"max_starts_per_second": "2", **WHY}),
    ("psp", {"max_starts_per_second": 1e9, **WHY}),
    ("psp", {"max_starts_per_second": 1e-9, **WHY}),
    ("psp", {"max_concurrency": 1, "expires_in": 0, **WHY}),
    ("psp", {"max_concurrency": 1, "expires_in": None, **WHY}),
    ("psp", {"max_concurrency": 1, "expires_in": 1e12, **WHY}),
    ("psp/cooldown", WHY),
    ("psp/cooldown", {"seconds": -1, **WHY}),
    ("psp/cooldown", {"seconds": False, **WHY}),
    ("psp/cooldown", {"seconds": 1e12, **WHY}),
    ("psp/pause", {}),
    ("psp/pause", {**WHY, "seconds": 1}),
]


@pytest.mark.parametrize(("path", "body"), BAD_BODIES)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    ops: Caller, path: str, body: Any
) -> None:
    assert slug_of(change(ops, path, body)) == "validation"
    assert read(ops).json()["revision"] == 0


@pytest.mark.parametrize(
    ("raw", "slug"),
    [
        (b'{"max_starts_per_second": NaN, "reason": "r"}', "malformed-json"),
        (b'{"max_starts_per_second": Infinity, "reason": "r"}', "malformed-json"),
        (b'{"max_starts_per_second": 1e999, "reason": "r"}', "value-not-kept"),
        (b'{"max_concurrency": 99999999999999999999, "reason": "r"}', "value-not-kept"),
        (b"[]", "validation"),
        (b"", "validation"),
    ],
)
def test_numbers_that_are_none_are_refused(ops: Caller, raw: bytes, slug: str) -> None:
    assert slug_of(change(ops, "psp", raw)) == slug


def test_only_operators_get_in(ops: Caller, acme: Caller) -> None:
    for method, path in (("GET", "capacity"), ("GET", "capacity/psp"), ("PATCH", "capacity/psp")):
        refused = acme.call(method, path, b"{}" if method == "PATCH" else b"")
        assert slug_of(refused) == "forbidden"
        assert "--ops" in refused.json()["detail"]
        assert Client().generic(method, f"/api/v1/{path}").status_code == 401
    assert slug_of(ops.get("jobs")) == "forbidden"
    assert slug_of(ops.get("live-events")) == "forbidden"


def test_a_console_user_needs_the_permission_of_what_it_does(ops: Caller) -> None:
    user = User.objects.create_user("console", is_staff=True)
    client = Client(headers={"Accept": "application/json"})
    client.force_login(user)
    assert client.get("/api/v1/capacity").status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_capacity"))
    assert client.get("/api/v1/capacity").status_code == 200

    def patch() -> Any:
        return client.patch(
            "/api/v1/capacity/psp",
            json.dumps({"max_concurrency": 1, **WHY}),
            content_type="application/json",
            headers={"If-Match": '"0"'},
        )

    assert patch().status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="change_capacity"))
    done = patch()
    assert done.status_code == 200, done.content
    assert done.json()["history"][0]["by"] == "console"


def test_a_token_of_the_operators_is_rotated_as_one(ops: Caller) -> None:
    renewed = ops.post("tokens/rotate").json()
    assert renewed["tenant"] == ""
    other = Caller(tenant="", user=ops.user, token=renewed["token"])
    assert other.get("capacity").status_code == 200


def test_the_list_is_bounded_and_can_be_followed(ops: Caller, kernel: Kernel) -> None:
    for number in range(5):
        kernel.capacity.set_limit(f"r{number}", max_concurrency=1, reason="test", by="test")
    names, address = [], "capacity?limit=3"
    while address:
        page = ops.get(address).json()
        assert len(page["results"]) <= 3
        names += [one["resource"] for one in page["results"]]
        address = page["next"]
    known = ["content_generation", "speech_recognition", "web_crawler"]
    assert names == sorted([*known, *(f"r{number}" for number in range(5))])
    for query in ("limit=0", "limit=101", "limit=x", "order=1"):
        assert slug_of(ops.get(f"capacity?{query}")) == "bad-filter"


def test_a_name_that_is_none_is_refused(ops: Caller) -> None:
    assert slug_of(ops.get("capacity/no%20name")) == "validation"
    assert slug_of(ops.get(f"capacity/{'x' * 201}")) == "not-found"


def test_without_the_store_the_answer_is_to_come_again(ops: Caller, impatient_store: None) -> None:
    url = "mongodb://127.0.0.1:1/?replicaSet=rs0"
    away = Kernel.connect(KernelConfig(mongo_url=url, database="nowhere"))
    try:
        with using_kernel(away):
            for answer in (
                ops.get("capacity"),
                ops.get("capacity/psp"),
                change(ops, "psp", {"max_concurrency": 1, **WHY}, match='"0"'),
                change(ops, "psp/pause", WHY, match='"0"'),
            ):
                assert slug_of(answer) == "unavailable"
                assert answer["Retry-After"] == "5"
    finally:
        relay.breaker.succeeded()
        away.close()


@pytest.fixture
def serving(kernel: Kernel) -> Kernel:
    """The kernel with articles whose page needs a permit, and that do nothing else."""

    def nothing(_: ActivityContext) -> dict[str, Any]:
        return {}

    steps = {name: Step(nothing) for name in ARTICLE.steps}
    steps["fetch_page"] = Step(nothing, traffic_resource="web_crawler")
    kernel.register(Definition(ARTICLE, steps=steps))
    return kernel


def test_a_job_tells_what_it_waits_for_and_its_place(acme: Caller, serving: Kernel) -> None:
    capacity = serving.capacity
    capacity.set_limit("web_crawler", max_starts_per_second=0.02, reason="slowly", by="test")
    jobs = []
    for _ in range(4):
        jobs.append(acme.submit()["id"])
        serving.drain(queues=[ARTICLE.queue])
    third = acme.get(f"jobs/{jobs[2]}")
    waiting = third.json()["waiting"]
    assert (waiting["reason"], waiting["resource"]) == ("permit", "web_crawler")
    assert waiting["since"]
    assert waiting["position"] == 2
    assert 50 < waiting["estimate"] <= 2 * 50
    again = acme.get(f"jobs/{jobs[2]}", If_None_Match=third["ETag"])
    assert again.status_code == 304, "a moving line is no change of the job"
    capacity.pause("web_crawler", reason="closed", by="test")
    paused = acme.job(jobs[2])["waiting"]
    assert (paused["reason"], paused["position"]) == ("paused", 2)
    assert "estimate" not in paused
    assert content.get_job("acme", jobs[2]).status == "initial"
    capacity.resume("web_crawler", reason="open", by="test")
    assert acme.job(jobs[2])["waiting"]["reason"] == "permit"


def test_the_list_goes_on_past_a_resource_this_version_cannot_read(
    ops: Caller, kernel: Kernel, mongo_client: MongoClient[Any], mongo_db_name: str
) -> None:
    kernel.capacity.set_limit("psp", max_concurrency=1, reason="test", by="test")
    foreign = {"_id": "foreign", "holders": 3}
    mongo_client[mongo_db_name]["workflow_capacity"].insert_one(foreign)
    shown = [one["resource"] for one in ops.get("capacity").json()["results"]]
    assert "psp" in shown
    assert "foreign" not in shown
    assert slug_of(ops.get("capacity/foreign")) == "unavailable"
    tag = {"match": '"0"'}
    assert slug_of(change(ops, "foreign", {"max_concurrency": 1, **WHY}, **tag)) == "unavailable"
