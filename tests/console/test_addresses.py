"""Rows are found by their ids as people paste them, and as the admin writes them."""

from django.contrib.admin.utils import UNQUOTE_MAP, quote
from django.test import Client

from jobs.models import ContentJob, TenantQuota

JOBS = "/ops/jobs/contentjob/"


def made(*keys: str) -> None:
    """Store jobs of these ids, with a title that tells the id."""
    ContentJob._base_manager.bulk_create(
        ContentJob(pk=key, tenant="acme", kind="article", title=f"title of {key}") for key in keys
    )


def test_every_id_is_found_as_it_is_and_as_the_admin_writes_it(operator: Client) -> None:
    # Beginnings that the admin reads as another character, with a later one it must leave alone.
    keys = [f"job{pair.lower()}c4_{pair[1:]}" for pair in UNQUOTE_MAP] + ["job_00ab", "job_5F"]
    made(*keys)
    for key in keys:
        for address in {key, quote(key)}:
            answer = operator.get(f"{JOBS}{address}/change/")
            assert answer.status_code == 200, address
            assert f"title of {key}" in answer.content.decode(), address
    for address in (keys[0], quote(keys[0])):
        assert operator.get(f"{JOBS}{address}/history/").status_code == 200, address


def test_where_two_readings_name_a_row_the_admins_own_links_stay_right(operator: Client) -> None:
    made("job_5Fx", "job_x")
    assert "title of job_x" in operator.get(f"{JOBS}job_5Fx/change/").content.decode()
    assert "title of job_5Fx" in operator.get(f"{JOBS}{quote('job_5Fx')}/change/").content.decode()


def test_an_id_that_is_nowhere_is_told_as_it_was_typed(operator: Client) -> None:
    page = operator.get(f"{JOBS}job_26ab/change/", follow=True).content.decode()
    assert "job_26ab" in page
    assert "exist" in page


def test_a_stranger_learns_nothing_of_a_raw_id(transactional_db: None, viewer: Client) -> None:
    made("job_26ab")
    answer = Client().get(f"{JOBS}job_26ab/change/")
    assert (answer.status_code, answer["Location"].split("?")[0]) == (302, "/ops/login/")
    TenantQuota.objects.create(tenant="a_26b")
    assert viewer.get("/ops/jobs/tenantquota/a_26b/change/").status_code == 403
