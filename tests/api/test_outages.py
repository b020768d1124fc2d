"""The API while a server it needs is away."""

import pytest
from django.db import OperationalError, connection
from django.test import Client

from jobs.dispatch import relay
from jobs.models import ContentJob
from jobs.runtime import using_kernel
from kernel import Kernel, KernelConfig
from tests.api.callers import Caller, slug_of

NOBODY = "mongodb://127.0.0.1:1/?replicaSet=rs0"


def test_without_the_store_requests_are_accepted_and_read(
    acme: Caller, impatient_store: None
) -> None:
    dead = Kernel.connect(KernelConfig(mongo_url=NOBODY, database="nowhere"))
    try:
        with using_kernel(dead):
            job_id = acme.submit()["id"]
            job = acme.job(job_id)
            assert job["waiting"] == {"reason": "unknown", "resource": None, "since": None}
            assert job["progress"] is None
            ready = Client().get("/health/ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
            assert acme.post(f"jobs/{job_id}/cancel").status_code == 202
    finally:
        relay.breaker.succeeded()
        dead.close()
    assert ContentJob.objects.get(pk=job_id).status == "canceled"


def test_without_the_business_database_the_answer_is_to_come_again(
    acme: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = acme.submit()["id"]

    def away(*_: object, **__: object) -> None:
        raise OperationalError("could not connect to server at secret-host")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", away)
        for answer in (
            acme.get("jobs"),
            acme.get(f"jobs/{job_id}"),
            acme.post("jobs", {"kind": "article", "source_url": "https://example.org/"}),
            acme.post(f"jobs/{job_id}/cancel"),
        ):
            assert slug_of(answer) == "unavailable"
            assert answer["Retry-After"] == "5"
            assert "secret-host" not in answer.content.decode()
        ready = Client().get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
        assert Client().get("/health/live").status_code == 200
    assert acme.job(job_id)["status"] == "initial"


def test_a_healthy_process_is_ready(acme: Caller) -> None:
    answer = acme.get("/health/ready")
    checks = {"database": "ok", "store": "ok", "progress": "ok"}
    assert answer.json() == {"status": "ok", "checks": checks}
    assert answer["Cache-Control"] == "no-store"
