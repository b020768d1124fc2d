"""The OpenAPI description: complete, free of warnings, usable without internet."""

import io

import yaml
from django.core.management import call_command
from django.test import Client


def test_the_schema_describes_every_call_without_warnings() -> None:
    output, errors = io.StringIO(), io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=output, stderr=errors)
    schema = yaml.safe_load(output.getvalue())
    calls = {
        f"{method.upper()} {path}" for path, found in schema["paths"].items() for method in found
    }
    assert calls == {
        "GET /api/v1/jobs",
        "POST /api/v1/jobs",
        "GET /api/v1/jobs/{job_id}",
        "POST /api/v1/jobs/{job_id}/retry",
        "POST /api/v1/jobs/{job_id}/cancel",
    }
    assert schema["openapi"].startswith("3.1")


def test_schema_and_forms_are_served_without_foreign_addresses(transactional_db: None) -> None:
    client = Client()
    assert client.get("/api/v1/schema").status_code == 200
    page = client.get("/api/v1/docs", headers={"Accept": "text/html"})
    assert page.status_code == 200
    text = page.content.decode()
    assert "swagger-ui" in text
    assert "https://cdn" not in text
    assert "unpkg" not in text
