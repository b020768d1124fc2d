"""An API client of one tenant, the way a front end sees the API.

Guarantees: every call goes through the whole URL and middleware stack. Leaves what an answer means
to the test.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import Client

from jobs.api.problems import PROBLEMS
from jobs.services.access import issue_token

ARTICLE: dict[str, Any] = {"kind": "article", "source_url": "https://example.org/story"}


@dataclass(slots=True, kw_only=True)
class Caller:
    """Calls as one user with one token."""

    tenant: str
    user: User
    token: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def get(self, path: str, **headers: str) -> Any:
        """GET below /api/v1/ or of a whole address."""
        return self._call("GET", path, b"", headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """POST a JSON value."""
        return self.send(path, b"" if body is None else json.dumps(body).encode(), **headers)

    def send(self, path: str, raw: bytes, **headers: str) -> Any:
        """POST bytes as they are."""
        return self._call("POST", path, raw, headers)

    def call(self, method: str, path: str, raw: bytes = b"", **headers: str) -> Any:
        """Make any call."""
        return self._call(method, path, raw, headers)

    def submit(self, **fields: Any) -> dict[str, Any]:
        """Submit an article and return the accepted body."""
        answer = self.post("jobs", {**ARTICLE, **fields})
        assert answer.status_code == 202, answer.content
        accepted: dict[str, Any] = answer.json()
        return accepted

    def job(self, job_id: str) -> dict[str, Any]:
        """Read a job."""
        answer = self.get(f"jobs/{job_id}")
        assert answer.status_code == 200, answer.content
        job: dict[str, Any] = answer.json()
        return job

    def _call(
        self, method: str, path: str, raw: bytes, headers: dict[str, str]
    ) -> HttpResponseBase:
        address = path if path.startswith(("/", "http")) else f"/api/v1/{path}"
        all_headers = {"Authorization": f"Bearer {self.token}"}
        all_headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        content_type = all_headers.pop("content-type", "application/json")
        return self.client.generic(
            method,
            address,
            raw,
            content_type=content_type,
            headers={name: value for name, value in all_headers.items() if value},
        )


def caller(tenant: str, *, username: str | None = None) -> Caller:
    """Make a user with a token of a tenant."""
    user = User.objects.create_user(username or f"user-of-{tenant}")
    issued = issue_token(user=user, tenant=tenant, name="tests")
    return Caller(tenant=tenant, user=user, token=issued.raw)


def slug_of(answer: Any) -> str:
    """Check the common shape and return the slug."""
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert {"type", "title", "status", "detail", "instance", "request_id", "retryable"} <= set(body)
    assert body["status"] == answer.status_code
    assert body["request_id"] == answer["Request-Id"]
    slug = str(body["type"].rpartition("/problems/")[2])
    assert PROBLEMS[slug].status == answer.status_code
    assert "Traceback" not in answer.content.decode()
    return slug
