"""No ordinary write reaches the protocol's columns."""

import json
from typing import Any

import pytest
from django.core import serializers

from jobs.dispatch import GuardedColumn, cancel, new_round
from jobs.models import ContentJob
from tests.dispatch.rows import force, new_job, state, stored

pytestmark = pytest.mark.django_db


def test_stale_copy_saved_over_a_new_round_does_not_bring_the_old_round_back() -> None:
    job = new_job()
    force(job, status="failed", error_code="timeout", dispatch_status="dispatched")
    stale = stored(job)
    assert new_round(stored(job)) is not None

    stale.source_url = "https://example.org/moved"
    stale.save()

    assert state(job) == ("initial", "pending", 2)
    assert stored(job).error_code == ""
    assert stored(job).source_url == "https://example.org/moved"


def test_freshly_installed_object_may_be_saved_while_the_row_moves_on() -> None:
    job = new_job()
    force(job, status="generating", dispatch_status="dispatched")
    job.source_url = "https://example.org/other"
    job.save()
    assert state(job) == ("generating", "dispatched", 1)


def test_refreshed_object_may_be_saved() -> None:
    job = new_job()
    force(job, status="generating", dispatch_status="dispatched")
    job.refresh_from_db()
    job.save()
    assert state(job) == ("generating", "dispatched", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", "ready"), ("dispatch_status", "dispatched"), ("result", {"summary": "x"})],
)
def test_saving_a_column_of_the_protocol_that_was_changed_by_hand_is_refused(
    name: str, value: object
) -> None:
    job = stored(new_job())
    setattr(job, name, value)
    with pytest.raises(GuardedColumn, match=name):
        job.save()
    assert state(job) == ("initial", "pending", 1)


@pytest.mark.parametrize("name", ["status", "dispatch_fencing_token", "error_code"])
def test_save_naming_a_column_of_the_protocol_is_refused(name: str) -> None:
    job = stored(new_job())
    with pytest.raises(GuardedColumn, match=name):
        job.save(update_fields=[name])


def test_partially_loaded_object_saves_what_it_loaded_and_nothing_of_the_protocol() -> None:
    job = new_job()
    stale = ContentJob.objects.only("source_url", "dispatch_status").get(pk=job.pk)
    force(job, dispatch_status="dispatched")
    stale.source_url = "https://example.org/partial"
    stale.save()
    assert state(job)[1] == "dispatched"
    assert stored(job).source_url == "https://example.org/partial"


@pytest.mark.parametrize(
    "changes", [{"dispatch_status": "dispatched"}, {"status": "ready"}, {"title": "t"}]
)
def test_queryset_update_of_a_column_of_the_protocol_is_refused(changes: dict[str, Any]) -> None:
    job = new_job()
    with pytest.raises(GuardedColumn):
        ContentJob.objects.filter(pk=job.pk).update(**changes)
    assert state(job) == ("initial", "pending", 1)


def test_queryset_update_of_other_columns_works() -> None:
    job = new_job()
    assert ContentJob.objects.filter(pk=job.pk).update(source_url="https://example.org/2") == 1


def test_bulk_update_of_a_column_of_the_protocol_is_refused() -> None:
    job = stored(new_job())
    with pytest.raises(GuardedColumn):
        ContentJob.objects.bulk_update([job], ["source_url", "dispatch_next_at"])


def test_stale_bulk_update_of_other_columns_leaves_a_new_round_alone() -> None:
    job = new_job()
    force(job, status="failed", dispatch_status="dispatched")
    stale = stored(job)
    new_round(stored(job))
    stale.source_url = "https://example.org/bulk"
    ContentJob.objects.bulk_update([stale], ["source_url"])
    assert state(job) == ("initial", "pending", 2)


def test_upsert_naming_a_column_of_the_protocol_is_refused() -> None:
    job = stored(new_job())
    with pytest.raises(GuardedColumn):
        ContentJob.objects.bulk_create(
            [job], update_conflicts=True, unique_fields=["id"], update_fields=["status"]
        )


def test_update_or_create_of_a_column_of_the_protocol_is_refused() -> None:
    job = new_job()
    with pytest.raises(GuardedColumn):
        ContentJob.objects.update_or_create(pk=job.pk, defaults={"status": "ready"})
    assert state(job) == ("initial", "pending", 1)


def test_loading_an_old_fixture_over_a_row_keeps_the_row_s_round() -> None:
    job = new_job()
    fixture = serializers.serialize("json", [stored(job)])
    force(job, status="failed", dispatch_status="dispatched")
    new_round(stored(job))
    for loaded in serializers.deserialize("json", fixture):
        loaded.save()
    assert state(job) == ("initial", "pending", 2)


def test_fixture_round_trip_keeps_json_columns() -> None:
    job = new_job(metadata={"$ref": "a", "": [1, 1.0, None]})
    text = serializers.serialize("json", [stored(job)])
    ContentJob._base_manager.filter(pk=job.pk)._raw_delete("default")
    for loaded in serializers.deserialize("json", text):
        loaded.save()
    assert json.dumps(stored(job).metadata) == json.dumps({"$ref": "a", "": [1, 1.0, None]})
    assert stored(job).dispatch_input == job.dispatch_input


def test_stale_copy_saved_over_a_cancel_does_not_reopen_the_job() -> None:
    job = new_job()
    stale = stored(job)
    cancel(ContentJob, job.pk)
    stale.save()
    assert state(job) == ("canceled", "withdrawing", 1)
