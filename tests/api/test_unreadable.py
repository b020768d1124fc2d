"""A job whose workflow this version cannot read is shown by what the business database knows."""

from typing import Any

import pytest
from django.db import connection
from pymongo import MongoClient

from jobs.models import ContentJob
from jobs.runtime import register_plans
from kernel import Kernel
from tests.api.callers import Caller, slug_of


@pytest.fixture
def job_id(acme: Caller, kernel: Kernel, mongo_client: MongoClient[Any], mongo_db_name: str) -> str:
    """A job that was dispatched, and whose instance a newer version has written to."""
    register_plans(kernel)
    job_id = str(acme.submit()["id"])
    assert ContentJob.objects.get(pk=job_id).dispatch_status == "dispatched"
    instances = mongo_client[mongo_db_name]["workflow_instances"]
    newer = {"waits": [{"step": "fetch", "kind": "dream"}]}
    assert instances.update_many({}, {"$set": newer}).modified_count == 1
    return job_id


@pytest.mark.parametrize("status", ["initial", "ready", "failed"])
def test_it_is_read_and_listed(acme: Caller, job_id: str, status: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_contentjob SET status = %s WHERE id = %s", [status, job_id])
    job = acme.job(job_id)
    unknown = {"reason": "unknown", "resource": None, "since": None}
    assert job["status"] == status
    assert job["waiting"] == (unknown if status == "initial" else None)
    assert job["progress"] is None
    assert [each["id"] for each in acme.get("jobs").json()["results"]] == [job_id]


def test_it_can_be_canceled_and_another_one_asked_for(acme: Caller, job_id: str) -> None:
    assert acme.post(f"jobs/{job_id}/cancel").status_code == 202
    assert acme.job(job_id)["status"] == "canceled"
    other = acme.job(acme.submit()["id"])
    assert other["progress"] is not None


def test_another_tenant_still_does_not_see_it(globex: Caller, job_id: str) -> None:
    assert slug_of(globex.get(f"jobs/{job_id}")) == "not-found"
