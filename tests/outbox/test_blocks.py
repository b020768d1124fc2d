"""Every operation inside a caller's own transaction: committed whole, or never asked for.

What follows outside the database waits for the commit of the outermost block; a rollback leaves
rows, ledger and kernel as they were; a callback of somebody else that raises costs time only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.test import Client

from jobs.dispatch import recovery
from jobs.dispatch.states import BACKOFF_CAP
from jobs.models import ContentJob, QuotaEntry
from jobs.services import access, content, deleting, quota
from jobs.services.errors import QuotaExceeded
from kernel import Kernel
from tests.dispatch.conftest import DatabaseTime
from tests.dispatch.rows import force, state
from tests.quota.books import of_books

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://example.org/article"
submit = partial(content.submit_job, tenant="acme", kind="article", source_url=URL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing a client may ask for, the job it starts from, and where that ends."""

    status: str | None
    call: Callable[[str], object]
    #: Status, dispatch status and round right after the write, and once the kernel knows.
    written: tuple[str, str, int]
    carried_out: tuple[str, str, int]


OPERATIONS = {
    "create": Operation(
        status=None,
        call=lambda _: submit(),
        written=("initial", "pending", 1),
        carried_out=("initial", "dispatched", 1),
    ),
    "retry": Operation(
        status="failed",
        call=lambda pk: content.retry_job("acme", pk),
        written=("initial", "pending", 2),
        carried_out=("initial", "dispatched", 2),
    ),
    "cancel": Operation(
        status="generating",
        call=lambda pk: content.cancel_job("acme", pk),
        written=("canceled", "withdrawing", 1),
        carried_out=("canceled", "withdrawn", 1),
    ),
    "regenerate": Operation(
        status="ready",
        call=lambda pk: content.regenerate_job("acme", pk),
        written=("initial", "pending", 2),
        carried_out=("initial", "dispatched", 2),
    ),
    "delete": Operation(
        status="initial",
        call=lambda pk: deleting.delete_job("acme", pk),
        written=("canceled", "withdrawing", 1),
        carried_out=("canceled", "withdrawn", 1),
    ),
}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


class Case:
    """A job in the state an operation starts from; its instance really is where the row says."""

    def __init__(self, operation: Operation, kernel: Kernel) -> None:
        self._operation = operation
        self._kernel = kernel
        self.pk = ""
        if operation.status is not None:
            self.pk = submit().pk
            self._bring_to(operation.status)

    def _bring_to(self, status: str) -> None:
        row = ContentJob.objects.get(pk=self.pk)
        with transaction.atomic():
            if status == "ready":
                quota.settle(row.pk, 1)
            elif status == "failed":
                quota.refund(row.pk, 1)
        if status == "failed":
            from tests.dispatch.failing import register_refusing_article

            register_refusing_article(self._kernel)
            self._kernel.drain(queues=["content"])
        force(row, status=status)

    def do(self) -> None:
        """Ask for the operation."""
        made = self._operation.call(self.pk)
        self.pk = self.pk or made.pk  # type: ignore[attr-defined]

    @property
    def state(self) -> tuple[str, str | None, int]:
        """(status, dispatch status, round) as stored."""
        return state(ContentJob(pk=self.pk))


@pytest.fixture
def case(operation: Operation, kernel: Kernel) -> Case:
    """The operation of this test, not yet asked for."""
    return Case(operation, kernel)


@every_operation
def test_outermost_commit_is_what_lets_it_happen(operation: Operation, case: Case) -> None:
    with transaction.atomic():
        with transaction.atomic():
            case.do()
        assert case.state == operation.written
    assert case.state == operation.carried_out
    assert list(of_books("acme")) == []


@every_operation
def test_rollback_of_the_block_takes_everything_back(operation: Operation, case: Case) -> None:
    before = snapshot()
    with transaction.atomic():
        case.do()
        transaction.set_rollback(True)
    assert snapshot() == before
    assert recovery.dispatch_due().handled == 0


@every_operation
def test_inner_rollback_leaves_the_outer_block_to_commit(operation: Operation, case: Case) -> None:
    before = snapshot()
    with transaction.atomic():
        beside = submit()
        with transaction.atomic():
            case.do()
            transaction.set_rollback(True)
    assert state(beside) == ("initial", "dispatched", 1)
    deleting.delete_job("acme", beside.pk)
    deleting.purge_deleted(older_than=-BACKOFF_CAP)
    QuotaEntry.objects.filter(job_id=beside.pk).delete()
    assert snapshot() == before


@every_operation
def test_callback_that_raises_costs_time_only(
    operation: Operation, case: Case, database_time: DatabaseTime
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    def do_beside_it() -> None:
        with transaction.atomic():
            transaction.on_commit(fail)
            case.do()

    with pytest.raises(ZeroDivisionError):
        do_beside_it()
    assert case.state == operation.written
    database_time.advance(3)
    recovery.dispatch_due()
    assert case.state == operation.carried_out
    assert list(of_books("acme")) == []


@every_operation
def test_operation_refused_inside_a_block_leaves_the_block_usable(
    operation: Operation, case: Case
) -> None:
    quota.set_limit("acme", 0)
    refusable = operation.written[0] == "initial"
    with transaction.atomic():
        beside = User.objects.create_user("beside")
        try:
            case.do()
        except QuotaExceeded:
            assert refusable
        else:
            assert not refusable
    assert User.objects.filter(pk=beside.pk).exists()
    assert list(of_books("acme")) == []


def test_request_that_is_one_transaction_is_published_after_its_commit(kernel: Kernel) -> None:
    connection = connections["default"]
    user = User.objects.create_user("caller")
    token = access.issue_token(user=user, tenant="acme", name="test").raw
    client = Client(headers={"Authorization": f"Bearer {token}"})
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        answer = client.post(
            "/api/v1/jobs", {"kind": "article", "source_url": URL}, content_type="application/json"
        )
        pk = answer.json()["id"]
        refused = client.post(f"/api/v1/jobs/{pk}/retry", content_type="application/json")
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False
    assert (answer.status_code, refused.status_code) == (202, 409)
    assert state(ContentJob(pk=pk)) == ("initial", "dispatched", 1)
    assert list(of_books("acme")) == []


def snapshot() -> Any:
    """Read everything an operation may have changed."""
    jobs = ContentJob.objects.order_by("pk").values_list(
        "pk", "status", "dispatch_status", "dispatch_fencing_token", "deleted_at"
    )
    entries = QuotaEntry.objects.order_by("pk").values_list("job_id", "round", "state")
    return list(jobs), list(entries)
