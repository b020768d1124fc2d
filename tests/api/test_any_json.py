"""Any JSON a client sends comes back equal through the whole workflow, or is refused by name."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from jobs.models import ContentJob
from jobs.worker import register_definitions
from kernel import Kernel
from tests.api.callers import ARTICLE, Caller, slug_of

REFUSALS = {"value-not-kept", "value-too-large", "too-large", "malformed-json"}
KEYS = ["", "$", ".", "a.b", "$ref", "$id", "$db", "$oid", "$date", "__proto__", "_id", "\x00", "é"]
INTEGERS = [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 10**400]

any_key = st.sampled_from(KEYS) | st.text(max_size=12)
any_scalar = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from(INTEGERS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.sampled_from(["\x00", "\ud800", "a\udfffb", "💣", "\u2028", "￿", "1e400", "NaN"])
)
any_json = st.recursive(
    any_scalar,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_key, inner, max_size=4),
    max_leaves=20,
)
any_object = st.dictionaries(any_key, any_json, max_size=6)

#: Fixtures live as long as the test: jobs of all examples share one database.
shared = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def same(left: object, right: object) -> bool:
    """Compare as JSON text: 1, 1.0 and true differ, so do 0.0 and -0.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@pytest.fixture
def working(kernel: Kernel, settings: Settings) -> Kernel:
    """The kernel with the real article workflow, allowed to fetch the local pages."""
    settings.BATON_FETCH_ALLOW_PRIVATE = True
    register_definitions(kernel)
    return kernel


@shared
@given(metadata=any_object)
def test_any_json_comes_back_equal_or_is_refused_by_name(
    acme: Caller, working: Kernel, pages: str, metadata: dict[str, Any]
) -> None:
    answer = acme.post("jobs", {**ARTICLE, "source_url": f"{pages}/tea.html", "metadata": metadata})
    if answer.status_code != 202:
        assert slug_of(answer) in REFUSALS, answer.content
        return
    assert_kept(acme, working, answer.json()["id"], metadata)


def assert_kept(acme: Caller, kernel: Kernel, job_id: str, metadata: dict[str, Any]) -> None:
    """Run the job to its end and look at every place the value went through."""
    kernel.drain(queues=["content"])
    job = acme.job(job_id)
    assert job["status"] == "ready", job
    instance = kernel.get(job["workflow_id"])
    assert same(job["metadata"], metadata)
    assert same(instance.input["metadata"], metadata)
    assert same(job["result"]["metadata"], metadata)


def nested(levels: int) -> dict[str, Any]:
    """Return an object of that many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "metadata",
    [
        {"$ref": "x", "$id": 1},
        {"deep": {"$ref": "collection", "$id": {"$oid": "0" * 24}, "$db": "x"}},
        {"": {"": {".": {"$": {"a.b": {"$set": 1}}}}}},
        {"text": "\x00 in a value"},
        {"emoji": "💣", "line": "\u2028", "last": "\uffff"},
        {"integers": [2**63 - 1, -(2**63), 2**53 + 1]},
        {"floats": [0.1, -0.0, 1e16, 5e-324, 1.7976931348623157e308, 1.0]},
        {"bools": [True, 1, 1.0, False, 0, None]},
        {"long key " * 100: 1},
        nested(60),
        {"text": "x" * 45_000},
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_looks_dangerous_and_is_not(
    acme: Caller, working: Kernel, pages: str, metadata: dict[str, Any]
) -> None:
    accepted = acme.submit(source_url=f"{pages}/tea.html", metadata=metadata)
    assert_kept(acme, working, accepted["id"], metadata)


@pytest.mark.parametrize(
    ("raw", "slug"),
    [
        (b'{"n": 18446744073709551616}', "value-not-kept"),
        (b'{"n": NaN}', "malformed-json"),
        (b'{"n": Infinity}', "malformed-json"),
        (b'{"\\u0000": 1}', "value-not-kept"),
        (b'{"t": "\\ud800"}', "value-not-kept"),
        (b'{"\\udfff": 1}', "value-not-kept"),
        (b'{"t": "' + b"x" * 60_000 + b'"}', "value-too-large"),
        (b'{"t": "' + b"x" * 300 * 1024 + b'"}', "too-large"),
        (b'{"t": "' + b"x" * 20 * 1024 * 1024 + b'"}', "too-large"),
        (json.dumps(nested(110)).encode(), "value-not-kept"),
        (json.dumps(nested(200)).encode(), "malformed-json"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too-large"),
        (b'{"a": 1, "a": 1}', "malformed-json"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_kept_is_refused_by_name(acme: Caller, raw: bytes, slug: str) -> None:
    body = b'{"kind": "article", "source_url": "https://example.org/", "metadata": ' + raw + b"}"
    answer = acme.send("jobs", body)
    assert slug_of(answer) == slug
    assert ContentJob.objects.count() == 0
    if slug == "value-not-kept" and b"1844" not in raw:
        assert answer.json()["errors"][0]["pointer"].startswith("/metadata")


@shared
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_garbage_never_gets_a_5xx(acme: Caller, raw: bytes) -> None:
    assert 400 <= acme.send("jobs", raw).status_code < 500


@shared
@given(body=any_json | st.dictionaries(st.sampled_from(sorted(ARTICLE) + KEYS), any_json))
def test_wrong_values_in_any_place_never_get_a_5xx(acme: Caller, body: Any) -> None:
    for path in ("jobs", "jobs/job_1/retry", "jobs/job_1/cancel"):
        answer = acme.post(path, body)
        assert 400 <= answer.status_code < 500
        slug_of(answer)


@shared
@given(
    names=st.lists(st.sampled_from(["status", "limit", "cursor", "x"]) | st.text(max_size=5)),
    value=st.text(max_size=30) | st.sampled_from(["ready", "0", "50", "WzEsIDJd"]),
)
def test_odd_queries_never_get_a_5xx(acme: Caller, names: list[str], value: str) -> None:
    from urllib.parse import quote

    query = "&".join(f"{quote(name)}={quote(value)}" for name in names)
    assert acme.get(f"jobs?{query}").status_code < 500
