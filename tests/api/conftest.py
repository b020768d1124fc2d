"""A kernel behind the API, and callers of two tenants."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs.dispatch import relay
from jobs.runtime import using_kernel
from kernel import Kernel
from tests.api.callers import Caller, caller
from tests.api.pages import pages  # noqa: F401 -- a fixture
from tests.api.serving import Server, running_server
from tests.kit.databases import Databases
from tests.kit.kernels import MakeKernel


@pytest.fixture(scope="package")
def shared_database(databases: Databases) -> Iterator[str]:
    """One database for all tests of a process, because they share a server."""
    with databases.lent() as name:
        yield name


@pytest.fixture
def mongo_db_name(databases: Databases, shared_database: str) -> str:
    """The shared database, without documents."""
    databases.empty(shared_database)
    return shared_database


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


@pytest.fixture(scope="package")
def shared_server(
    django_db_setup: None, mongo_url: str, redis_url: str, shared_database: str
) -> Iterator[Server]:
    """One web process for all tests of a process: starting it costs more than most of them."""
    env = {
        "BATON_MONGO_URL": mongo_url,
        "BATON_REDIS_URL": redis_url,
        "BATON_BROKER_URL": redis_url,
        "BATON_DATABASE": shared_database,
        "BATON_KEY_PREFIX": shared_database,
    }
    with running_server(env) as server:
        yield server


@pytest.fixture
def server(acme: Caller, shared_server: Server) -> Iterator[Server]:
    """The API under uvicorn, on the databases of this test, which is the only one that uses it.

    Whatever a test does with it, it must not make the server print a traceback.
    """
    server = replace(shared_server, lines_before=len(shared_server.child.lines))
    yield server
    assert "Traceback" not in server.said, server.said
