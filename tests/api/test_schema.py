"""The OpenAPI description: complete, in step with the code, kept by the API, usable offline."""

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from jobs.api.problems import PROBLEMS
from jobs.services.access import issue_token
from tests.api.callers import Caller
from tests.api.serving import running_server
from tests.kit.processes import ROOT, environment

KEPT = ROOT / "docs" / "openapi.yaml"
#: Refusals no described call is answered with: they are about addresses and methods.
NOT_OF_A_CALL = {"method-not-allowed"}
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


@pytest.fixture(scope="module")
def described() -> str:
    """The description as the code makes it."""
    output, errors = io.StringIO(), io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=output, stderr=errors)
    return output.getvalue()


@pytest.fixture(scope="module")
def schema(described: str) -> dict[str, Any]:
    """The description as data."""
    found: dict[str, Any] = yaml.safe_load(described)
    return found


def operations(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": call
        for path, methods in schema["paths"].items()
        for method, call in methods.items()
    }


def test_the_kept_description_is_in_step_with_the_code(described: str) -> None:
    assert KEPT.read_text("utf-8").rstrip() == described.rstrip(), (
        "run `python manage.py spectacular --file docs/openapi.yaml`"
    )


def test_every_route_and_method_is_described(schema: dict[str, Any]) -> None:
    from jobs.api.urls import urlpatterns

    routes = {
        (method, re.sub(r"<\w+:(\w+)>", r"{\1}", str(route.pattern)))
        for route in urlpatterns
        if route.name not in {"schema", "docs"}
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(getattr(route.callback, "view_class", None), method.lower())
    }
    assert {f"{method} /api/v1/{path}" for method, path in routes} <= set(operations(schema))
    assert schema["openapi"].startswith("3.1")


def test_every_call_has_a_name_and_every_refusal_an_example(schema: dict[str, Any]) -> None:
    calls = operations(schema)
    names = [call["operationId"] for call in calls.values()]
    assert len(set(names)) == len(names)
    shown = {
        (slug, int(status))
        for call in calls.values()
        for status, answer in call["responses"].items()
        for slug in answer.get("content", {})
        .get("application/problem+json", {})
        .get("examples", {})
    }
    published = {(slug_as_name(kind.slug), kind.status) for kind in PROBLEMS.values()}
    missing = published - {(slug_as_name(slug), status) for slug, status in shown}
    assert {slug for slug, _ in missing} == {slug_as_name(slug) for slug in NOT_OF_A_CALL}
    for call in calls.values():
        assert {"401", "429", "500", "503"} <= set(call["responses"])


def slug_as_name(slug: str) -> str:
    """Compare slugs and the names spectacular makes of them."""
    return re.sub(r"[^a-z]", "", slug.lower())


def test_the_api_keeps_to_its_description(
    acme: Caller, child_env: dict[str, str], tmp_path: Path
) -> None:
    """Generated calls, sensible and not, meet no 5xx and nothing undescribed."""
    with running_server({**child_env, "BATON_API_RATE": "off"}) as server:
        # A call may end its own token, so the two runs do not share one.
        other = issue_token(user=acme.user, tenant="acme", name="to be rotated").raw
        operators = issue_token(user=acme.user, name="operators", ops=True).raw
        for token, selection in (
            (acme.token, ("--exclude-operation-id", "tokens_rotate")),
            (other, ("--include-operation-id", "tokens_rotate")),
            (operators, ("--include-path-regex", "/capacity")),
        ):
            done = subprocess.run(
                [
                    *(
                        sys.executable,
                        "-m",
                        "schemathesis.cli",
                        "run",
                        f"{server.url}/api/v1/schema",
                    ),
                    *("--header", f"Authorization: Bearer {token}", *selection),
                    *("--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing,stateful"),
                    *("--max-examples", "6", "--continue-on-failure", "--warnings", "off"),
                    *("--generation-database", "none"),
                ],
                cwd=tmp_path,
                env=environment({"PYTHONPATH": str(ROOT)}),
                capture_output=True,
                text=True,
                timeout=150,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.said, server.said


def test_schema_and_forms_are_served_without_foreign_addresses(transactional_db: None) -> None:
    client = Client()
    assert client.get("/api/v1/schema").status_code == 200
    page = client.get("/api/v1/docs", headers={"Accept": "text/html"})
    assert page.status_code == 200
    text = page.content.decode()
    assert "swagger-ui" in text
    assert "https://cdn" not in text
    assert "unpkg" not in text
