"""`manage.py verify`: business rows against instances and ledger, output, exit status."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pymongo import MongoClient

from jobs.dispatch.clock import db_now
from jobs.dispatch.states import BACKOFF_CAP
from jobs.models import ContentJob, QuotaEntry, TenantQuota
from jobs.runtime import using_kernel
from jobs.services import content
from kernel import Kernel, KernelConfig
from tests.dispatch.rows import force, new_job
from tests.jobs.site import Site

pytestmark = pytest.mark.django_db(transaction=True)


def verify(*arguments: str) -> tuple[int, str]:
    """Run the command; return its exit status and what it printed."""
    out = StringIO()
    try:
        call_command("verify", *arguments, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.fixture
def ready(serving: Kernel, site: Site) -> ContentJob:
    """A job that ended as it should, beside one that failed and one under way."""
    job = content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
    content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/missing")
    serving.drain(["content"])
    content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
    job.refresh_from_db()
    assert job.status == "ready"
    return job


def test_nothing_is_found_where_nothing_is_wrong(ready: ContentJob) -> None:
    status, told = verify()
    assert (status, told.splitlines()[-1]) == (0, "verify: 0 findings")
    assert "instances" in told
    assert ready.status == "ready"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"dispatch_biz_key": "nowhere"}, "is dispatched and has no instance"),
        ({"dispatch_fencing_token": 2}, "its instance knows 1"),
        ({"status": "generating"}, "is generating and its instance is completed"),
        ({"dispatch_status": "pending"}, "its next turn is None"),
        ({"status": "failed"}, "is failed and its ledger entry is settled"),
    ],
)
def test_a_row_that_contradicts_its_instance_or_ledger_is_found(
    ready: ContentJob, columns: dict[str, Any], says: str
) -> None:
    force(ready, **columns)
    status, told = verify()
    assert status == 1
    assert says in told
    assert "what to do:" in told
    assert ready.pk in told


@pytest.mark.parametrize(
    "newer", [{"waits": [{"step": "fetch", "kind": "dream"}]}, {"status": "paused"}]
)
def test_an_instance_that_cannot_be_read_is_told_as_that_and_not_as_absent(
    ready: ContentJob, mongo_client: MongoClient[Any], serving: Kernel, newer: dict[str, Any]
) -> None:
    database = mongo_client[serving.config.database]
    update = {"q": {"biz_key": ready.dispatch_biz_key}, "u": {"$set": newer}}
    database.command(
        {"update": "workflow_instances", "updates": [update], "bypassDocumentValidation": True}
    )
    status, told = verify()
    assert status == 1
    assert "cannot be read" in told
    assert "has no instance" not in told
    force(ready, dispatch_fencing_token=2)
    assert "its instance knows 1" in verify()[1]


@pytest.mark.parametrize("status", ["pending", "processing", "withdrawing"])
def test_a_row_nobody_takes_for_longer_than_any_delay_is_found(
    serving: Kernel, site: Site, status: str
) -> None:
    job = content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
    force(job, dispatch_status=status, dispatch_next_at=db_now(BACKOFF_CAP))
    assert verify()[0] == 0
    force(job, dispatch_next_at=db_now(2 * BACKOFF_CAP))
    code, told = verify()
    assert code == 1
    assert "later than anything puts it off" in told


def test_a_withdrawn_row_whose_instance_runs_is_found(kernel: Kernel) -> None:
    job = new_job()
    kernel.start_or_resume(
        job.dispatch_plan(), biz_key=str(job.dispatch_biz_key), input=job.dispatch_payload()
    )
    force(job, dispatch_status="withdrawn", dispatch_next_at=None, status="canceled")
    QuotaEntry.objects.create(tenant="acme", job_id=job.pk, round=1, state="refunded")
    status, told = verify()
    assert status == 1
    assert "is withdrawn and its instance is running" in told


def test_counters_that_are_not_the_ledgers_sum_are_found(ready: ContentJob) -> None:
    TenantQuota.objects.filter(tenant=ready.tenant).update(settled=7)
    status, told = verify()
    assert status == 1
    assert f"tenant {ready.tenant}" in told


def test_json_is_one_finding_a_line_and_the_sum(
    ready: ContentJob, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> None:
    instances = mongo_client[mongo_db_name]["workflow_instances"]
    instances.update_one({"biz_key": ready.dispatch_biz_key}, {"$set": {"claim_token": "x"}})
    status, told = verify("--json")
    finding, total = (json.loads(line) for line in told.splitlines())
    assert status == 1
    assert (finding["invariant"], finding["biz_key"]) == (4, ready.dispatch_biz_key)
    assert {"subject", "fact", "advice", "status"} <= finding.keys()
    assert total["findings"] == 1
    assert total["looked"]["instances"] >= 3


def test_bounds_bound_and_nonsense_is_refused(ready: ContentJob) -> None:
    status, told = verify("--limit", "1", "--json")
    assert status == 0
    assert set(json.loads(told)["looked"].values()) == {1}
    assert verify("--sample", "2")[0] == 0
    assert verify("--limit", "0")[0] == 2
    assert ready.status == "ready"


def test_a_store_that_is_away_is_status_2(impatient_store: None) -> None:
    away = Kernel.connect(KernelConfig(mongo_url="mongodb://127.0.0.1:9/?directConnection=true"))
    with using_kernel(away):
        status, told = verify()
    away.close()
    assert status == 2
    assert "could not look" in told
