"""The end of a round and its notification are one transaction, and only its own round moves it."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from jobs.activities import notify
from jobs.dispatch import FencedWrite
from jobs.models import Notification
from jobs.services import notifications, rounds
from kernel import Kernel, WorkflowCanceled
from tests.dispatch.rows import state
from tests.jobs.site import Site
from tests.outbox.test_notifications import submit, told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def local_receivers(settings: Settings) -> None:
    settings.BATON_FETCH_ALLOW_PRIVATE = True


def ready(job_id: str) -> FencedWrite:
    return rounds.finish_ready(job_id, 1, title="", result={})


def failed(job_id: str) -> FencedWrite:
    return rounds.finish_failed(job_id, 1, code="no", message="no")


@pytest.mark.parametrize("end", [ready, failed])
def test_an_end_that_cannot_be_announced_is_no_end(
    serving: Kernel, site: Site, monkeypatch: pytest.MonkeyPatch, end: Callable[[str], FencedWrite]
) -> None:
    job = submit(site)

    def dies(*_: object, **__: object) -> Any:
        raise OSError("the process died between the two")

    monkeypatch.setattr(notifications, "install", dies)
    with pytest.raises(OSError, match="died"):
        end(job.pk)
    assert state(job)[0] == "initial"
    monkeypatch.undo()
    assert end(job.pk).done
    assert Notification.objects.count() == 1


def test_a_delivery_of_another_round_is_not_sent_and_a_delivered_one_stays_so(
    serving: Kernel, site: Site
) -> None:
    job = submit(site)
    rounds.finish_ready(job.pk, 1, title="", result={})
    row = told(job)
    with pytest.raises(WorkflowCanceled):
        notify._waiting(row.pk, 2)
    assert notify._waiting(row.pk, 1).pk == row.pk
    assert notifications.finish_delivered(row.pk, 1, answer=200).done
    assert not notifications.finish_failed(row.pk, 1, code="late", message="late").done
    assert told(job).status == "delivered"
