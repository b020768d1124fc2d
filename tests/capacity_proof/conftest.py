"""One deployment for the tests of this folder that break nothing; others build their own."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from tests.capacity_proof.deployment import Deployment, deployed, with_workers
from tests.capacity_proof.sizes import CHILDREN, WORKERS
from tests.kit.own_servers import own_mongo, own_redis  # noqa: F401 - fixtures of this tier

Deploy = Callable[..., Deployment]


@pytest.fixture(scope="package")
def shared(
    mongo_url: str,
    redis_url: str,
    mongo_client: MongoClient[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    """Two workers and control on a database of this process's own, while it has tests of these."""
    name = f"t_{uuid.uuid4().hex[:16]}"
    env = {
        "BATON_MONGO_URL": mongo_url,
        "BATON_REDIS_URL": redis_url,
        "BATON_BROKER_URL": redis_url,
        "BATON_DATABASE": name,
        "BATON_KEY_PREFIX": name,
    }
    with deployed(env, tmp_path_factory.mktemp("proof")) as deployment:
        with_workers(deployment, workers=WORKERS, children=CHILDREN)
        yield deployment
    mongo_client.drop_database(name)


@pytest.fixture
def deploy(child_env: dict[str, str], tmp_path: Path) -> Iterator[Deploy]:
    """Build a deployment of a test's own; keyword arguments say where its servers are."""
    with ExitStack() as stack:
        yield lambda **env: stack.enter_context(deployed({**child_env, **env}, tmp_path))
