"""A kernel behind the API, and callers of two tenants."""

from collections.abc import Iterator

import pytest

from jobs.dispatch import relay
from jobs.runtime import using_kernel
from kernel import Kernel, KernelConfig
from tests.api.callers import Caller, caller
from tests.api.pages import pages  # noqa: F401 -- a fixture


@pytest.fixture
def kernel(mongo_url: str, mongo_db_name: str) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database."""
    kernel = Kernel.connect(KernelConfig(mongo_url=mongo_url, database=mongo_db_name, lease=5))
    kernel.ensure_schema()
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel
    kernel.close()


@pytest.fixture
def acme(kernel: Kernel, transactional_db: None) -> Caller:
    """A caller of the tenant `acme`."""
    return caller("acme")


@pytest.fixture
def globex(kernel: Kernel, transactional_db: None) -> Caller:
    """A caller of another tenant."""
    return caller("globex")
