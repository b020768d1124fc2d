"""Fixtures every tier uses: the run's servers, a database and key prefix a test, child settings.

Guarantees that tests may run in parallel: while it runs, each owns its Mongo database and its Redis
keys, and each xdist worker its own SQLite file.
Leaves starting and ending the servers to `tests.kit.servers`, kernels to `tests.kit`.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis as redis_client_library
from pymongo import MongoClient
from pymongo.collection import Collection

from tests.crash.fixtures import lab  # noqa: F401 - one lab for every tier
from tests.crash.report import summarise
from tests.kit import order, servers
from tests.kit.commands import commands  # noqa: F401 - what a test's database was asked
from tests.kit.databases import Databases
from tests.kit.kernels import (  # noqa: F401 - fixtures of every tier
    dead_worker,
    kernel,
    make_kernel,
)
from tests.kit.outages import eager_driver, impatient_store  # noqa: F401 - of every tier
from tests.kit.waiting import eventually as eventually_function

_LEADS_RUN = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the run's folder; the process that did so cleans up at the end."""
    config.stash[_LEADS_RUN] = servers.lead_run()
    # This process has its settings; children take the product's own from the environment.
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    # Hundreds of children would each compile every module anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what waits for real workers first."""
    items.sort(key=lambda item: order.place(item.path, config.rootpath))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the crash matrix killed, whichever processes did it."""
    summarise(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the run's servers, when this process leads the run."""
    if config.stash.get(_LEADS_RUN, False):
        servers.end_run()


@pytest.fixture(scope="session")
def mongo_url() -> str:
    """Address of the run's mongod, a replica set of one member."""
    return servers.servers().mongo_url


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Address of the run's redis-server."""
    return servers.servers().redis_url


@pytest.fixture(scope="session")
def mongo_client(mongo_url: str) -> Iterator[MongoClient[dict[str, Any]]]:
    """A client for looking at facts beside the product's own."""
    with MongoClient[dict[str, Any]](mongo_url) as client:
        yield client


@pytest.fixture(scope="session")
def redis_client(redis_url: str) -> Iterator["redis_client_library.Redis"]:
    """A client for looking at hints beside the product's own; answers are text."""
    client = redis_client_library.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.close()


@pytest.fixture(scope="session")
def databases(mongo_url: str, mongo_client: MongoClient[dict[str, Any]]) -> Iterator[Databases]:
    """The databases of this test process."""
    databases = Databases(mongo_client, mongo_url)
    yield databases
    databases.drop()


@pytest.fixture
def mongo_db_name(databases: Databases) -> Iterator[str]:
    """A database for this test alone, with its schema and without documents."""
    with databases.lent() as name:
        yield name


@pytest.fixture
def ran() -> list[str]:
    """What a test's activities tell of themselves."""
    return []


@pytest.fixture
def flush(redis_client: "redis_client_library.Redis", key_prefix: str) -> Callable[[], None]:
    """Lose every hint of this test's kernels, as a restarted Redis does."""

    def lose() -> None:
        if keys := list(redis_client.scan_iter(match=f"*{key_prefix}*", count=1000)):
            redis_client.delete(*keys)

    return lose


@pytest.fixture
def instances(
    mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> Collection[dict[str, Any]]:
    """The instances as they are stored, for what no version of this code would write."""
    return mongo_client[mongo_db_name]["workflow_instances"]


@pytest.fixture
def key_prefix(redis_client: "redis_client_library.Redis") -> Iterator[str]:
    """A Redis key prefix of this test's own; its keys are deleted afterwards."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    yield prefix
    if keys := list(redis_client.scan_iter(match=f"*{prefix}*", count=1000)):
        redis_client.delete(*keys)


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """`tests.kit.waiting.eventually`, for tests that prefer a fixture."""
    return eventually_function


@pytest.fixture
def child_env(
    mongo_url: str, redis_url: str, mongo_db_name: str, key_prefix: str
) -> dict[str, str]:
    """Environment that points a child process at this test's database, keys and servers."""
    return {
        "BATON_MONGO_URL": mongo_url,
        "BATON_REDIS_URL": redis_url,
        "BATON_BROKER_URL": redis_url,
        "BATON_DATABASE": mongo_db_name,
        "BATON_KEY_PREFIX": key_prefix,
    }


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Keep the business database of this xdist worker in one of its own.

    On SQLite it is a file, so that child processes can use it too.
    """
    from django.db import connections

    default = connections["default"]
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    if default.vendor == "sqlite":
        name = str(servers.run_dir() / f"business-{worker}.sqlite3")
    else:
        name = f"test_{default.settings_dict['NAME']}_{worker}"
    default.settings_dict["TEST"]["NAME"] = name
