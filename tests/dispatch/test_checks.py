"""A model that cannot keep the protocol is refused at start-up."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from django.core import checks
from django.db import models
from django.test.utils import isolate_apps

from jobs.dispatch import DispatchMixin, StatusMapping
from jobs.models import ContentJob
from jobs.plans import ARTICLE

SOUND = StatusMapping(
    initial="new", failed="failed", canceled="canceled", terminal=frozenset({"failed", "canceled"})
)


def ids(model: type[models.Model]) -> list[str | None]:
    found = [m for m in model.check(databases=["default"]) if isinstance(m, checks.Error)]
    return [message.id for message in found]


def test_content_job_passes() -> None:
    assert ids(ContentJob) == []


@isolate_apps("jobs")
def test_multi_table_child_is_refused() -> None:
    class Child(ContentJob):
        class Meta:
            app_label = "jobs"

    assert "jobs.E001" in ids(Child)


@isolate_apps("jobs")
def test_model_without_declarations_is_told_each_of_them() -> None:
    class Bare(DispatchMixin):
        class Meta(DispatchMixin.Meta):
            app_label = "jobs"

    assert ids(Bare) == ["jobs.E002", "jobs.E003", "jobs.E003"]


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"terminal": frozenset({"failed"})}, "canceled"),
        ({"terminal": frozenset({"canceled"})}, "failed"),
        ({"terminal": frozenset({"new", "failed", "canceled"})}, "initial"),
        ({"column": "state"}, "state"),
        ({"cleared": {"missing": None}}, "missing"),
        ({"initial": "unknown"}, "unknown"),
        ({"failed": "canceled", "terminal": frozenset({"canceled"})}, "different"),
    ],
)
@isolate_apps("jobs")
def test_incomplete_mapping_is_refused(mapping: dict[str, Any], words: str) -> None:
    declared = {
        "initial": "new",
        "failed": "failed",
        "canceled": "canceled",
        "terminal": frozenset({"failed", "canceled"}),
    } | mapping

    class Order(DispatchMixin):
        dispatch_mapping = StatusMapping(**declared)
        dispatch_plans = (ARTICLE,)
        status = models.CharField(
            max_length=9, choices=[(s, s) for s in ("new", "failed", "canceled")]
        )

        class Meta(DispatchMixin.Meta):
            app_label = "jobs"

        def dispatch_payload(self) -> Mapping[str, Any]:
            return {}

    found = [m for m in Order.check(databases=["default"]) if m.id == "jobs.E002"]
    assert any(words in m.msg for m in found)


@isolate_apps("jobs")
def test_own_meta_without_the_index_and_unguarded_manager_are_refused() -> None:
    class Order(DispatchMixin):
        dispatch_mapping = SOUND
        dispatch_plans = (ARTICLE,)
        status = models.CharField(max_length=9)
        objects: ClassVar[Any] = models.Manager()

        class Meta:
            app_label = "jobs"

        def dispatch_payload(self) -> Mapping[str, Any]:
            return {}

    assert ids(Order) == ["jobs.E004", "jobs.E005"]
