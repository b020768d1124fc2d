"""Who is let in, and for which tenant."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from jobs.models import ApiToken
from jobs.services import access
from jobs.services.errors import InvalidRequest
from tests.api.callers import Caller, caller


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer baton_" + "A" * 43,
        "Bearer baton_" + "A" * 5000,
        "Basic YTpi",
        "Token x",
        "Bearer \xe9\xff",
        "bearer a b c",
    ],
)
def test_nobody_is_let_in_without_a_valid_token(acme: Caller, header: str) -> None:
    answer = acme.get("jobs", Authorization=header)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["type"].endswith("/problems/unauthenticated")


def test_expired_revoked_and_inactive_end_a_token(acme: Caller) -> None:
    assert acme.get("jobs").status_code == 200
    token = ApiToken.objects.get(tenant="acme")
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert acme.get("jobs").status_code == 401
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    assert acme.get("jobs").status_code == 200
    assert access.revoke_token(token.pk)
    assert not access.revoke_token(token.pk)
    assert acme.get("jobs").status_code == 401
    ApiToken.objects.update(revoked_at=None)
    User.objects.update(is_active=False)
    assert acme.get("jobs").status_code == 401


def test_the_scheme_is_read_in_any_case(acme: Caller) -> None:
    assert acme.get("jobs", Authorization=f"bEARER {acme.token}").status_code == 200


def test_a_token_is_kept_as_its_hash_only(acme: Caller) -> None:
    token = ApiToken.objects.get()
    assert acme.token not in str(token.__dict__)
    assert len(token.token_hash) == 64
    acme.get("jobs")
    token.refresh_from_db()
    assert token.last_used_at is not None
    first = token.last_used_at
    acme.get("jobs")
    token.refresh_from_db()
    assert token.last_used_at == first


@pytest.mark.parametrize("tenant", ["", "A", "a b", "../x", "é", "a" * 64, "-a"])
def test_a_token_needs_a_tenant_slug(acme: Caller, tenant: str) -> None:
    with pytest.raises(InvalidRequest):
        access.issue_token(user=acme.user, tenant=tenant, name="x")


def test_a_token_that_is_over_before_it_begins_is_refused(acme: Caller) -> None:
    with pytest.raises(InvalidRequest):
        access.issue_token(user=acme.user, tenant="acme", name="x", expires_at=timezone.now())


def test_a_session_reads_and_writes_only_with_its_csrf_token(acme: Caller) -> None:
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.force_login(acme.user)
    assert browser.get("/api/v1/jobs").status_code == 200
    body = {"kind": "article", "source_url": "https://example.org/"}
    refused = browser.post("/api/v1/jobs", body, content_type="application/json")
    assert refused.status_code == 403
    assert refused.json()["type"].endswith("/problems/forbidden")
    browser.get("/ops/login/?next=/ops/")
    browser.logout()
    page = browser.get("/ops/login/")
    assert page.status_code == 200
    browser.force_login(acme.user)
    browser.cookies["csrftoken"] = "a" * 32
    accepted = browser.post(
        "/api/v1/jobs",
        body,
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 32},
    )
    assert accepted.status_code == 202


def test_a_session_of_no_tenant_or_of_two_is_turned_away(acme: Caller) -> None:
    stranger = User.objects.create_user("stranger")
    browser = Client()
    browser.force_login(stranger)
    assert browser.get("/api/v1/jobs").status_code == 403
    access.issue_token(user=acme.user, tenant="second", name="x")
    browser.force_login(acme.user)
    assert browser.get("/api/v1/jobs").status_code == 403
    assert acme.get("jobs").status_code == 200


def test_the_demo_access_stays_the_same_while_it_works(
    transactional_db: None, settings: object, tmp_path: object
) -> None:
    settings.BATON_DATA_DIR = tmp_path  # type: ignore[attr-defined]
    first = access.ensure_demo_access()
    assert access.ensure_demo_access() == first
    token = access.authenticate(first.token)
    assert token is not None
    assert token.tenant == first.tenant
    assert User.objects.get(username=first.username).check_password(first.password)
    access.revoke_token(token.pk)
    second = access.ensure_demo_access()
    assert second.token != first.token
    assert second.password == first.password


#: Bodies of the calls that need one; the others get none.
BODIES: dict[str, object] = {"jobs/<str:job_id>/choose": {"option": "a"}}


def calls_on_one_job() -> list[tuple[str, str]]:
    """Return method and route of every call that names a job."""
    from jobs.api.urls import urlpatterns

    return [
        (method, str(route.pattern))
        for route in urlpatterns
        if "job_id" in str(route.pattern)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(getattr(route.callback, "view_class", None), method.lower())
    ]


@pytest.mark.parametrize(("method", "route"), calls_on_one_job())
def test_another_tenants_job_does_not_exist(
    acme: Caller, globex: Caller, method: str, route: str
) -> None:
    job_id = acme.submit()["id"]
    raw = json.dumps(BODIES[route]).encode() if route in BODIES else b""
    theirs = globex.call(method, route.replace("<str:job_id>", job_id), raw)
    nobodys = globex.call(method, route.replace("<str:job_id>", "job_" + "0" * 32), raw)
    assert theirs.status_code == nobodys.status_code == 404

    def comparable(answer: object) -> dict[str, object]:
        body = answer.json()  # type: ignore[attr-defined]
        return {key: body[key] for key in body if key not in {"instance", "request_id"}}

    assert comparable(theirs) == comparable(nobodys)
    assert acme.job(job_id)["status"] == "initial"
    assert globex.get("jobs").json()["results"] == []


def test_the_walk_meets_every_route_on_one_job() -> None:
    from jobs.api.urls import urlpatterns

    routes = {str(route.pattern) for route in urlpatterns if "job_id" in str(route.pattern)}
    assert {route for _, route in calls_on_one_job()} == routes
    assert ("DELETE", "jobs/<str:job_id>") in calls_on_one_job()


def test_users_of_two_tenants_do_not_share_a_list(acme: Caller) -> None:
    other = caller("initech")
    mine, theirs = acme.submit()["id"], other.submit()["id"]
    assert [job["id"] for job in acme.get("jobs").json()["results"]] == [mine]
    assert [job["id"] for job in other.get("jobs").json()["results"]] == [theirs]
