"""Refusals: one shape everywhere, a page each, and never a trace."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.api import parsers, presentation
from jobs.api.problems import PROBLEMS
from jobs.services import content
from tests.api.callers import ARTICLE, Caller, slug_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1/", "/api/v2/jobs", "/api/v1/jobs/"])
def test_unknown_addresses_are_not_found(acme: Caller, path: str) -> None:
    answer = acme.get(path)
    assert slug_of(answer) == "not-found"
    assert "/api/v1/docs" in answer.json()["detail"]
    assert slug_of(acme.post(path, {})) == "not-found"


@pytest.mark.parametrize(
    "job_id", ["x", "job_", "%00", "%F0%9F%92%A3", "..%2F..", "job_" + "a" * 5000, "%ED%A0%80"]
)
def test_a_malformed_id_is_not_found(acme: Caller, job_id: str) -> None:
    for answer in (
        acme.get(f"jobs/{job_id}"),
        acme.post(f"jobs/{job_id}/retry"),
        acme.post(f"jobs/{job_id}/cancel"),
    ):
        assert slug_of(answer) == "not-found"


def test_methods_and_media_types_are_checked(acme: Caller) -> None:
    wrong_method = acme.call("DELETE", "jobs")
    assert slug_of(wrong_method) == "method-not-allowed"
    assert wrong_method["Allow"]
    assert slug_of(acme.get("jobs", Accept="text/html")) == "not-acceptable"
    for accept in ("application/json", "*/*", "application/*", "application/problem+json"):
        assert acme.get("jobs", Accept=accept).status_code == 200
    body = json.dumps(ARTICLE).encode()
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "x"):
        answer = acme.call("POST", "jobs", body, content_type=kind)
        assert slug_of(answer) == "unsupported-media-type"


def test_a_format_cannot_be_asked_for_in_the_address(acme: Caller) -> None:
    assert slug_of(acme.get("jobs?format=xml")) == "bad-filter"


@pytest.mark.parametrize(
    ("raw", "slug"),
    [
        (b"", "validation"),
        (b"{", "malformed-json"),
        (b"hello", "malformed-json"),
        (b"\xff\xfe", "malformed-json"),
        (b"\xef\xbb\xbf{}", "malformed-json"),
        (b'{"kind": NaN}', "malformed-json"),
        (b'{"kind": -Infinity}', "malformed-json"),
        (b'{"kind": 1, "kind": 2}', "malformed-json"),
        (b'{"metadata": {"a": {"b": 1, "b": 1}}}', "malformed-json"),
        (b"{} {}", "malformed-json"),
        (b"[" * 100_000, "malformed-json"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "malformed-json"),
        (b"[" * 129 + b"]" * 129, "malformed-json"),
        (b"[]", "validation"),
        (b"null", "validation"),
        (b'"x"', "validation"),
        (b"5", "validation"),
        (b'{"metadata": {"n": 9223372036854775808}}', "value-not-kept"),
        (b'{"metadata": {"n": ' + b"9" * 5000 + b"}}", "value-not-kept"),
        (b'{"metadata": {"n": 1e400}}', "value-not-kept"),
    ],
)
def test_a_body_that_cannot_be_used_is_named(acme: Caller, raw: bytes, slug: str) -> None:
    assert slug_of(acme.send("jobs", raw)) == slug


def test_a_body_over_the_limit_is_refused_by_its_size(acme: Caller) -> None:
    for size in (parsers.BODY_BYTES + 1, 300 * 1024, 20 * 1024 * 1024):
        answer = acme.send("jobs", b'{"x": "' + b"a" * size + b'"}')
        assert slug_of(answer) == "too-large"
        assert answer.json()["limit_bytes"] == parsers.BODY_BYTES
    lying = acme.call("POST", "jobs", b"{}", Content_Length="99999999999")
    assert slug_of(lying) in {"too-large", "validation"}


def test_an_error_of_ours_is_told_without_its_text(
    acme: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret-of-the-house")

    monkeypatch.setattr(content, "list_jobs", broken)
    answer = acme.get("jobs")
    assert slug_of(answer) == "internal"
    assert "secret-of-the-house" not in answer.content.decode()


def test_an_error_while_writing_the_answer_is_told_the_same_way(
    acme: Caller, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(presentation, "summary", lambda *_: {"x": object()})
    acme.submit()
    for debug in (False, True):
        settings.DEBUG = debug
        assert slug_of(acme.get("jobs")) == "internal"


def test_a_foreign_host_is_refused_and_not_repeated(acme: Caller) -> None:
    answer = acme.get("jobs", Host="evil.example")
    assert slug_of(answer) == "bad-request"
    assert "evil.example" not in answer.content.decode()


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("abc-DEF_1.2", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("short", False),
        ("with space", False),
        ("<script>alert(1)", False),
        ("", False),
    ],
)
def test_a_sane_request_id_is_kept(acme: Caller, sent: str, kept: bool) -> None:
    answer = acme.get("jobs", Request_Id=sent)
    assert (answer["Request-Id"] == sent) is kept
    assert answer["Request-Id"]
    assert slug_of(acme.get("/api/x", Request_Id=sent)) == "not-found"


def test_what_a_client_sent_is_named_safely(acme: Caller) -> None:
    raw = b'{"\\ud800<img src=x onerror=alert(1)>": 1, "kind": "article"}'
    answer = acme.send("jobs", raw)
    assert slug_of(answer) == "validation"
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("slug", sorted(PROBLEMS))
def test_each_problem_has_its_page(slug: str) -> None:
    page = Client().get(f"/problems/{slug}")
    assert page.status_code == 200
    text = html.unescape(page.content.decode())
    assert PROBLEMS[slug].title in text
    assert ("the same request may succeed later" in text) is PROBLEMS[slug].retryable
    assert ("no, not unchanged" in text) is not PROBLEMS[slug].retryable


def test_a_page_nobody_published_is_not_found() -> None:
    assert Client().get("/problems/nonsense").status_code == 404
    assert Client().get("/problems/").status_code == 200


def test_the_document_lists_exactly_the_published_problems() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \| (.+) \|$", text, flags=re.MULTILINE)
    table = [(kind.slug, str(kind.status), kind.title) for kind in PROBLEMS.values()]
    assert listed == table


def test_slugs_and_statuses_are_frozen() -> None:
    published = {
        "bad-request": 400,
        "malformed-json": 400,
        "bad-cursor": 400,
        "bad-filter": 400,
        "idempotency-key-malformed": 400,
        "unauthenticated": 401,
        "forbidden": 403,
        "not-found": 404,
        "method-not-allowed": 405,
        "not-acceptable": 406,
        "not-retryable": 409,
        "round-in-progress": 409,
        "already-terminal": 409,
        "event-closed": 409,
        "choice-not-open": 409,
        "choice-already-made": 409,
        "unknown-option": 422,
        "idempotency-in-progress": 409,
        "token-replaced": 409,
        "precondition-failed": 412,
        "too-large": 413,
        "unsupported-media-type": 415,
        "validation": 422,
        "value-not-kept": 422,
        "value-too-large": 422,
        "idempotency-key-reused": 422,
        "precondition-required": 428,
        "quota-exceeded": 429,
        "rate-limited": 429,
        "internal": 500,
        "unavailable": 503,
    }
    assert {kind.slug: kind.status for kind in PROBLEMS.values()} == published
