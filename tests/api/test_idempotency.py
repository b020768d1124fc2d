"""The Idempotency-Key: one effect and one answer, whoever repeats, races or dies."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from jobs.api.idempotency import fingerprint
from jobs.models import ContentJob, IdempotencyKey
from jobs.services import idempotency
from jobs.services.access import issue_token
from kernel import Kernel
from tests.api import dying
from tests.api.callers import ARTICLE, Caller, slug_of
from tests.api.serving import Server, database_url
from tests.api.test_jobs import fail
from tests.kit.processes import python
from tests.kit.waiting import never

KEY = "9f86d081-884c-4d65"


def ask(who: Caller, key: str = KEY, **fields: Any) -> Any:
    return who.post("jobs", {**ARTICLE, **fields}, Idempotency_Key=key)


def test_a_repeat_gets_the_first_answer_byte_for_byte(acme: Caller, kernel: Kernel) -> None:
    first = ask(acme)
    assert first.status_code == 202
    assert "Idempotency-Replayed" not in first
    acme.post(f"jobs/{first.json()['id']}/cancel")
    again = ask(acme)
    assert (again.status_code, again.content) == (202, first.content)
    assert again["Idempotency-Replayed"] == "true"
    for header in ("Location", "Content-Type", "Cache-Control"):
        assert again[header] == first[header]
    assert ContentJob.objects.count() == 1
    assert len(kernel.list_instances()) == 1


def test_without_a_key_each_request_is_another_job(acme: Caller) -> None:
    assert acme.submit()["id"] != acme.submit()["id"]
    assert IdempotencyKey.objects.count() == 0


def test_one_key_may_be_written_in_two_ways(acme: Caller) -> None:
    first = ask(acme, r"a\b-and-sixteen-characters")
    for same in (r'"a\\b-and-sixteen-characters"', r"  a\b-and-sixteen-characters "):
        assert ask(acme, same).content == first.content
    assert ContentJob.objects.count() == 1


def test_the_same_value_written_otherwise_is_the_same_request(acme: Caller) -> None:
    first = ask(acme, metadata={"a": 1, "b": [True, None]})
    raw = b'{ "metadata":\n{"b": [ true,null], "\\u0061" :1},'
    raw += b'"source_url":"https://example.org/story","kind":"article"}'
    again = acme.send("jobs", raw, Idempotency_Key=KEY)
    assert again.content == first.content


@pytest.mark.parametrize(
    "fields", [{"metadata": {"n": 1}}, {"metadata": {}}, {"priority": "async"}]
)
def test_another_body_is_refused_and_changes_nothing(acme: Caller, fields: Any) -> None:
    first = ask(acme)
    other = ask(acme, **fields)
    assert slug_of(other) == "idempotency-key-reused"
    assert other.json()["original"]["id"] == first.json()["id"]
    assert ContentJob.objects.count() == 1
    assert ask(acme).content == first.content


def test_numbers_of_different_kinds_make_different_requests() -> None:
    kinds: list[object] = [1, 1.0, True, "1", None, [1], {"a": 1}, -0.0, 0.0, "\ud800"]
    assert len({fingerprint("POST", "/x", kind) for kind in kinds}) == len(kinds)
    assert fingerprint("POST", "/x", 1) != fingerprint("POST", "/y", 1)


def test_keys_of_others_never_meet(acme: Caller, globex: Caller) -> None:
    colleague = Caller(
        tenant="acme",
        user=globex.user,
        token=issue_token(user=globex.user, tenant="acme", name="x").raw,
    )
    answers = [ask(acme), ask(globex), ask(colleague)]
    assert [answer.status_code for answer in answers] == [202] * 3
    assert len({answer.json()["id"] for answer in answers}) == 3
    assert not any("Idempotency-Replayed" in answer for answer in answers)
    other = ask(globex, metadata={"n": 1})
    assert other.json()["original"]["id"] == answers[1].json()["id"]


def test_each_call_has_keys_of_its_own(acme: Caller) -> None:
    job_id = ask(acme).json()["id"]
    canceled = acme.post(f"jobs/{job_id}/cancel", Idempotency_Key=KEY)
    assert (canceled.status_code, canceled.json()["status"]) == (202, "canceled")


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "short",
        "x" * 15,
        "x" * 256,
        '"' + "x" * 15 + '"',
        '"sixteen-characters',
        'sixteen-"characters',
        '"sixteen\\characters"',
        "sixteen characters",
        '"sixteen characters"',
        "sixteen-characters,sixteen-characters",
        '"sixteen-characters";a=1',
        "sixteen-characters-\xe9",
        "sixteen-characters-\x7f",
    ],
)
def test_a_malformed_key_is_refused(acme: Caller, key: str) -> None:
    # The test client drops empty headers, so they are sent in its own words.
    answer = acme.client.post(
        "/api/v1/jobs",
        json.dumps(ARTICLE),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {acme.token}",
        HTTP_IDEMPOTENCY_KEY=key,
    )
    assert slug_of(answer) == "idempotency-key-malformed"
    assert ContentJob.objects.count() == 0


@pytest.mark.parametrize(
    "key", ["x" * 16, "x" * 255, '"' + "\\\\" * 255 + '"', "!#$%&'()*+-./:;<=>?"]
)
def test_keys_up_to_the_limits_pass(acme: Caller, key: str) -> None:
    first = ask(acme, key)
    assert first.status_code == 202, first.content
    assert ask(acme, key).content == first.content


def test_a_refusal_keeps_nothing_so_the_key_serves_the_corrected_request(acme: Caller) -> None:
    assert slug_of(ask(acme, source_url="ftp://example.org/")) == "validation"
    assert slug_of(ask(acme, metadata={"t": "x" * 60_000})) == "value-too-large"
    assert IdempotencyKey.objects.count() == 0
    assert ask(acme).status_code == 202


def test_a_retry_under_a_key_can_be_repeated(acme: Caller) -> None:
    job_id = acme.submit()["id"]
    fail(job_id)
    first = acme.post(f"jobs/{job_id}/retry", Idempotency_Key=KEY)
    assert (first.status_code, first.json()["round"]) == (202, 2)
    again = acme.post(f"jobs/{job_id}/retry", {}, Idempotency_Key=KEY)
    assert again.content == first.content
    assert slug_of(acme.post(f"jobs/{job_id}/retry")) == "round-in-progress"
    other = acme.post(f"jobs/{acme.submit()['id']}/retry", Idempotency_Key=KEY)
    assert slug_of(other) == "idempotency-key-reused"


def test_a_repeat_that_began_beside_the_first_request_is_not_judged_by_what_that_did(
    acme: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = acme.submit()["id"]
    fail(job_id)
    find, first = idempotency._find, []

    def then_the_first_commits(claim: idempotency.Claim) -> idempotency.Answer | None:
        nothing = find(claim)
        monkeypatch.undo()
        first.append(acme.post(f"jobs/{job_id}/retry", Idempotency_Key=KEY))
        return nothing

    monkeypatch.setattr(idempotency, "_find", then_the_first_commits)
    again = acme.post(f"jobs/{job_id}/retry", Idempotency_Key=KEY)
    assert (first[0].status_code, again.status_code) == (202, 202)
    assert again.content == first[0].content
    assert again["Idempotency-Replayed"] == "true"


def test_a_repeat_meets_the_first_request_before_its_commit(acme: Caller) -> None:
    """It waits for the commit; PostgreSQL lets it say so when that takes long."""
    inside, go_on = threading.Event(), threading.Event()
    first: list[idempotency.Answer] = []

    def slowly() -> idempotency.Answer:
        inside.set()
        assert go_on.wait(30)
        return idempotency.Answer(status=202, body=b"{}", location="/x", job_id="job_1")

    claim = idempotency.Claim(
        tenant="acme",
        user_id=acme.user.pk,
        operation="jobs_create",
        key=KEY,
        fingerprint=fingerprint("POST", "/api/v1/jobs", ARTICLE),
    )
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(closing(lambda: first.append(idempotency.answer_once(claim, slowly)[0])))
        assert inside.wait(30)
        repeat = pool.submit(closing(lambda: ask(acme)))
        if connection.vendor == "postgresql":
            answer = repeat.result(30)
            assert slug_of(answer) == "idempotency-in-progress"
            assert answer["Retry-After"] == "1"
        else:
            never(repeat.done, during=0.3)
        go_on.set()
        slow.result(30)
        if connection.vendor != "postgresql":
            assert repeat.result(30).content == first[0].body
    assert ask(acme).content == first[0].body


def closing(work: Callable[[], Any]) -> Callable[[], Any]:
    """Let a thread leave no connection behind."""

    def run() -> Any:
        try:
            return work()
        finally:
            connection.close()

    return run


def test_fifty_racing_clients_make_one_job(acme: Caller, server: Server) -> None:
    together = threading.Barrier(50)

    def race(_: int) -> tuple[int, bytes]:
        with server.client(acme.token) as client:
            client.get("/health/live")
            together.wait(60)
            answer = client.post("/api/v1/jobs", json=ARTICLE, headers={"Idempotency-Key": KEY})
            return answer.status_code, answer.content

    with ThreadPoolExecutor(50) as pool:
        answers = set(pool.map(race, range(50)))
    assert len(answers) == 1
    status, body = answers.pop()
    assert status == 202
    assert [job.pk for job in ContentJob.objects.all()] == [json.loads(body)["id"]]


def test_a_request_killed_at_any_statement_is_absent_or_complete(
    acme: Caller, child_env: dict[str, str]
) -> None:
    env = {
        **child_env,
        "BATON_DATABASE_URL": database_url(),
        "BATON_LOG_LEVEL": "ERROR",
        # A killed process keeps the share of the rate it had taken.
        "BATON_API_RATE": "off",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    with python("-m", "tests.api.dying", acme.token, env=env) as child:
        child.wait(120)
    reports = [json.loads(line) for line in child.lines if line.startswith("{")]
    kills = reports.pop()[dying.TOKEN_ENDS_WITH]
    assert kills == len(reports) >= 12, child.output
    replayed = set()
    for report in reports:
        one, two = report["repeats"]
        assert one["status"] == two["status"] == 202, report
        assert one["body"] == two["body"]
        assert two["replayed"] == "true"
        replayed.add(one["replayed"])
        url = f"https://example.org/{report['name']}"
        assert ContentJob.objects.filter(source_url=url).count() == 1
    # Some died before the commit and some after it.
    assert replayed == {"", "true"}


def test_keys_are_forgotten_when_old_and_their_job_is_over(acme: Caller) -> None:
    over, running = ask(acme, "k" * 16).json()["id"], ask(acme, "l" * 16).json()["id"]
    acme.post(f"jobs/{over}/cancel")
    ask(acme, "m" * 16)
    old = timezone.now() - timedelta(days=8)
    IdempotencyKey.objects.exclude(key="m" * 16).update(created_at=old)
    assert idempotency.forget(dry_run=True) == 1
    assert idempotency.forget(older_than=timedelta(0)) == 1
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"l" * 16, "m" * 16}
    assert IdempotencyKey.objects.get(key="l" * 16).job_id == running
    assert idempotency.forget() == 0


def test_forgetting_is_bounded(acme: Caller) -> None:
    for number in range(5):
        ask(acme, f"{number}" * 16)
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(days=8), job_id="")
    output = StringIO()
    call_command("forget_idempotency_keys", "--limit", "2", "--dry-run", stdout=output)
    assert (output.getvalue(), IdempotencyKey.objects.count()) == ("2 keys would go.\n", 5)
    call_command("forget_idempotency_keys", "--limit", "2", stdout=output)
    assert IdempotencyKey.objects.count() == 3
    call_command("forget_idempotency_keys", stdout=output)
    assert IdempotencyKey.objects.count() == 0
    with pytest.raises(CommandError):
        call_command("forget_idempotency_keys", "--days", "6")
