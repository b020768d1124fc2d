"""The rate of a tenant: it holds over threads and processes, and each answer tells what is left."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from pytest_django import Settings

from config.settings.env import read_environment
from jobs.api import throttling
from jobs.models import TenantBucket
from jobs.services.rate import Limiter, Rate
from tests.api.callers import Caller, slug_of
from tests.api.serving import running_server

RATE = Rate(calls=40, seconds=4000)


@pytest.fixture
def limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five calls in 500 seconds, counted from here."""
    settings.BATON_API_RATE = (5, 500)
    monkeypatch.setattr(throttling, "_limiter", Limiter())


def pass_time(seconds: float) -> None:
    """Let a bucket fill for that long."""
    bucket = TenantBucket.objects.get()
    assert isinstance(bucket.full_at, datetime)
    bucket.full_at -= timedelta(seconds=seconds)
    bucket.save()


def test_a_tenant_calls_until_its_bucket_is_empty(
    acme: Caller, globex: Caller, limited: None
) -> None:
    answers = [acme.get("jobs") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert [answer["RateLimit"].partition(";t=")[0] for answer in answers] == [
        f'"default";r={left}' for left in (4, 3, 2, 1, 0)
    ]
    assert answers[0]["RateLimit-Policy"] == '"default";q=5;w=500'
    refused = acme.post("jobs", {})
    assert slug_of(refused) == "rate-limited"
    assert 95 <= int(refused["Retry-After"]) <= 100
    assert re.fullmatch(r'"default";r=0;t=\d+', refused["RateLimit"])
    assert globex.get("jobs").status_code == 200


def test_a_bucket_fills_with_time_and_not_beyond_its_size(acme: Caller, limited: None) -> None:
    while acme.get("jobs").status_code == 200:
        pass
    pass_time(100)
    assert acme.get("jobs").status_code == 200
    assert acme.get("jobs").status_code == 429
    pass_time(100_000)
    assert [acme.get("jobs").status_code for _ in range(6)] == [200] * 5 + [429]


def test_strangers_take_nothing_from_anybody(acme: Caller, limited: None) -> None:
    for _ in range(8):
        answer = acme.get("jobs", Authorization="Bearer nonsense")
        assert answer.status_code == 401
        assert "RateLimit" not in answer
    assert TenantBucket.objects.count() == 0
    assert acme.get("schema", Authorization="").status_code == 200


def test_the_rate_holds_over_processes_and_threads(acme: Caller) -> None:
    """Eight limiters stand for eight processes; each is used by four threads."""
    limiters = [Limiter() for _ in range(8)]

    def call(number: int) -> bool:
        try:
            return limiters[number % 8].check("acme", RATE).allowed
        finally:
            connection.close()

    with ThreadPoolExecutor(32) as pool:
        allowed = sum(pool.map(call, range(160)))
    assert allowed == RATE.calls


def test_tokens_taken_ahead_are_spent_soon_or_lost(acme: Caller) -> None:
    now = 0.0
    limiter, rate = Limiter(clock=lambda: now), Rate(calls=500, seconds=50_000)
    assert limiter.check("acme", rate).left == 499
    taken = TenantBucket.objects.get().full_at
    for left in range(498, 489, -1):
        assert limiter.check("acme", rate).left == left
    assert TenantBucket.objects.get().full_at == taken
    limiter.check("acme", rate)
    assert TenantBucket.objects.get().full_at > taken
    now = 2.0
    # Nine held tokens are too old; ten new ones are taken.
    assert limiter.check("acme", rate).left == 479


def test_two_servers_count_together(acme: Caller, child_env: dict[str, str]) -> None:
    env = {**child_env, "BATON_API_RATE": "30/3000"}
    with running_server(env) as one, running_server(env) as two, ThreadPoolExecutor(12) as pool:
        clients = [server.client(acme.token) for server in (one, two)]
        statuses = list(
            pool.map(lambda n: clients[n % 2].get("/api/v1/jobs").status_code, range(60))
        )
        for client in clients:
            client.close()
    assert sorted(statuses) == [200] * 30 + [429] * 30


@pytest.mark.parametrize(
    ("value", "rate"), [("10/1", (10, 1)), (" 600/60 ", (600, 60)), ("off", None), ("", (600, 60))]
)
def test_the_rate_is_set_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, rate: tuple[int, int] | None
) -> None:
    monkeypatch.setenv("BATON_API_RATE", value)
    assert read_environment().api_rate == rate


@pytest.mark.parametrize("value", ["0/1", "1/0", "600", "-1/5", "a/b", "1/1/1", "1.5/2"])
def test_a_rate_that_means_nothing_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("BATON_API_RATE", value)
    with pytest.raises(ImproperlyConfigured, match=r"BATON_API_RATE.*600/60"):
        read_environment()


def test_without_a_rate_nothing_is_counted(acme: Caller, settings: Settings) -> None:
    settings.BATON_API_RATE = None
    assert "RateLimit" not in acme.get("jobs")
    assert TenantBucket.objects.count() == 0
