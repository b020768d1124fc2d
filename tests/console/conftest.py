"""An operator with a browser session, and jobs to look at."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jobs.dispatch import relay
from jobs.models import ContentJob
from jobs.runtime import using_kernel
from jobs.services import content
from kernel import Kernel
from tests.kit.kernels import MakeKernel


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database."""
    kernel = make_kernel(with_redis=False, lease=5)
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel


@pytest.fixture
def operator(transactional_db: None) -> Client:
    """A superuser's browser."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("operator", password="x"))
    return browser


@pytest.fixture
def viewer(transactional_db: None) -> Client:
    """The browser of a person who may look at jobs and nothing else."""
    from django.contrib.auth.models import Permission

    user = User.objects.create_user("viewer", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_contentjob"))
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def job(kernel: Kernel, transactional_db: None) -> ContentJob:
    """A job that was accepted and dispatched; its metadata would like to be HTML."""
    return content.submit_job(
        tenant="acme",
        kind="article",
        source_url="https://example.org/<img src=x onerror=alert(1)>".replace(" ", "%20"),
        metadata={"<script>alert(1)</script>": "javascript:alert(1)"},
    )
