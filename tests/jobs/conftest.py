"""A kernel that serves the real definitions, and a web site of the test's own."""

from collections.abc import Iterator

import pytest

from jobs.activities.outside import Ports
from jobs.composing import ExtractiveComposer
from jobs.fetching import PageFetcher
from jobs.workflows.article import article_definition
from kernel import Kernel
from tests.dispatch.conftest import database_time, kernel
from tests.jobs.site import Site, running_site

__all__ = ["database_time", "kernel"]


@pytest.fixture
def site() -> Iterator[Site]:
    """A local web site with an article at /tides."""
    with running_site() as site:
        yield site


@pytest.fixture
def serving(kernel: Kernel) -> Kernel:
    """The test's kernel with `content.article` registered; local pages are allowed."""
    kernel.register(
        article_definition(
            Ports(pages=PageFetcher(allow_private=True), composer=ExtractiveComposer())
        )
    )
    return kernel
