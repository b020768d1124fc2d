"""A step that is told to wait rests: its attempts are kept, and only a provider stops everybody."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.activities import resting
from jobs.activities.outside import Ports
from jobs.composing import ExtractiveComposer
from jobs.fetching import PageFetcher
from jobs.models import ContentJob
from jobs.ports import ComposeFailedForNow, Composition
from jobs.resources import CONTENT_GENERATION, WEB_CRAWLER
from jobs.services import content
from jobs.workflows.article import article_definition
from kernel import InstanceStatus, Kernel, Reason
from kernel.testing import TimeShift
from tests.dispatch.rows import stored
from tests.jobs.site import ARTICLE_HTML, Site

pytestmark = pytest.mark.django_db(transaction=True)


class Busy:
    """A composer that asks to be left alone for as long as it is told to."""

    def __init__(self) -> None:
        #: What the next calls are refused with; None: too often, without a time.
        self.refusals: list[float | None] = []
        self.asked = 0
        self._real = ExtractiveComposer()

    def compose(self, text: str, **options: Any) -> Composition:
        self.asked += 1
        if self.refusals:
            raise ComposeFailedForNow("429", code="rate_limited", retry_after=self.refusals.pop(0))
        return self._real.compose(text, **options)


@pytest.fixture
def busy() -> Busy:
    return Busy()


@pytest.fixture
def serving(kernel: Kernel, busy: Busy) -> Kernel:
    kernel.register(article_definition(Ports(pages=PageFetcher(allow_private=True), composer=busy)))
    return kernel


@pytest.fixture
def submit(site: Site) -> Callable[..., ContentJob]:
    def submitted(path: str = "/tides", tenant: str = "acme") -> ContentJob:
        return content.submit_job(tenant=tenant, kind="article", source_url=site.url + path)

    return submitted


def turn(kernel: Kernel, seconds: float = 0.0) -> None:
    """Let time pass, and run what is due."""
    TimeShift(kernel).advance(seconds=seconds)
    kernel.tick()
    kernel.drain(queues=["content"])


def step_of(kernel: Kernel, job: ContentJob, name: str) -> Any:
    instance = kernel.find(biz_key=job.dispatch_key())
    assert instance is not None
    return instance.steps[name]


def test_a_provider_that_asks_for_it_is_left_alone_by_everybody(
    serving: Kernel, busy: Busy, submit: Callable[..., ContentJob]
) -> None:
    busy.refusals = [40.0]
    first = submit()
    turn(serving)
    closed = serving.capacity.status(CONTENT_GENERATION)
    assert closed.cooldown_until is not None
    assert 30 < (closed.cooldown_until - closed.now).total_seconds() <= 40
    second = submit(tenant="globex")
    turn(serving)
    assert busy.asked == 1, "nobody asks a provider that wants to be left alone"
    for job in (first, second):
        instance = serving.find(biz_key=job.dispatch_key())
        assert instance is not None
        assert instance.blocked_on is not None
        assert instance.blocked_on.reason is Reason.PERMIT
        assert instance.blocked_on.resources == (CONTENT_GENERATION,)
    turn(serving, 41)
    turn(serving)
    assert [stored(job).status for job in (first, second)] == ["ready", "ready"]
    assert step_of(serving, first, "compose").attempt == 1


def test_no_provider_closes_a_resource_for_longer_than_the_bound(
    serving: Kernel, busy: Busy, submit: Callable[..., ContentJob]
) -> None:
    busy.refusals = [86_400.0]
    submit()
    turn(serving)
    closed = serving.capacity.status(CONTENT_GENERATION)
    assert closed.cooldown_until is not None
    rest = (closed.cooldown_until - closed.now).total_seconds()
    assert resting.REST_SECONDS_MAX - 10 < rest <= resting.REST_SECONDS_MAX


def test_a_provider_that_never_stops_asking_costs_an_attempt_in_the_end(
    serving: Kernel, busy: Busy, submit: Callable[..., ContentJob]
) -> None:
    busy.refusals = [None] * (resting.RESTS_MAX + 1)
    job = submit()
    turn(serving)
    for rests in range(1, resting.RESTS_MAX + 1):
        assert busy.asked == rests
        assert step_of(serving, job, "compose").failures == 0
        turn(serving, resting.REST_SECONDS_MAX + 1)
    assert busy.asked > resting.RESTS_MAX
    compose = step_of(serving, job, "compose")
    assert compose.failures == 1
    assert compose.error.code == "rate_limited"
    turn(serving, 200)
    assert stored(job).status == "ready"
    assert step_of(serving, job, "compose").attempt == 2


def test_a_busy_site_makes_its_own_step_sleep_and_nobody_elses(
    serving: Kernel, site: Site, submit: Callable[..., ContentJob]
) -> None:
    site.pages["/busy"] = (429, "later")
    slow = submit("/busy")
    turn(serving)
    assert step_of(serving, slow, "fetch_page").status == "waiting"
    assert serving.capacity.status(WEB_CRAWLER).cooldown_until is None
    other = submit()
    turn(serving)
    assert stored(other).status == "ready"
    site.pages["/busy"] = (200, ARTICLE_HTML)
    turn(serving, 6)
    assert stored(slow).status == "ready"
    assert step_of(serving, slow, "fetch_page").attempt == 1
    assert site.asked.count("/busy") == 2


def test_a_tenants_work_is_held_by_its_own_resource(
    serving: Kernel, submit: Callable[..., ContentJob]
) -> None:
    serving.capacity.set_limit("tenant_work:acme", max_concurrency=1, reason="a share", by="test")
    serving.capacity.pause("tenant_work:acme", reason="unpaid", by="test")
    held, free = submit(), submit(tenant="globex")
    turn(serving)
    assert stored(free).status == "ready"
    instance = serving.find(biz_key=held.dispatch_key())
    assert instance is not None
    assert instance.status is InstanceStatus.RUNNING
    assert instance.blocked_on is not None
    assert instance.blocked_on.resources == ("tenant_work:acme",)
    serving.capacity.resume("tenant_work:acme", reason="paid", by="test")
    turn(serving)
    assert stored(held).status == "ready"
    assert serving.capacity.status("tenant_work:acme").used == 0
