"""A kernel behind the API, and callers of two tenants."""

from collections.abc import Iterator

import pytest

from jobs.dispatch import relay
from jobs.runtime import using_kernel
from kernel import Kernel
from tests.api.callers import Caller, caller
from tests.api.pages import pages  # noqa: F401 -- a fixture
from tests.api.serving import Server, running_server
from tests.kit.kernels import MakeKernel


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database."""
    kernel = make_kernel(with_redis=False, lease=5)
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel


@pytest.fixture
def acme(kernel: Kernel, transactional_db: None) -> Caller:
    """A caller of the tenant `acme`."""
    return caller("acme")


@pytest.fixture
def globex(kernel: Kernel, transactional_db: None) -> Caller:
    """A caller of another tenant."""
    return caller("globex")


@pytest.fixture
def server(acme: Caller, child_env: dict[str, str]) -> Iterator[Server]:
    """The API under uvicorn, on the database and the store of this test."""
    with running_server(child_env) as server:
        yield server
