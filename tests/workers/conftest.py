"""Processes of the product, started for one test: web, workers, beat; and pages to fetch."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from kernel import Kernel
from tests.api.callers import caller
from tests.api.pages import pages  # noqa: F401 -- a fixture
from tests.kit.kernels import MakeKernel
from tests.kit.processes import Child, python

Start = Callable[..., Child]


@pytest.fixture
def stack_env(
    child_env: dict[str, str], tmp_path: Path, transactional_db: None, kernel: Kernel
) -> dict[str, str]:
    """Environment of the product's processes: this test's servers, keys and business database."""
    return {
        **child_env,
        "BATON_DATABASE_URL": f"sqlite:///{Path(connection.settings_dict['NAME']).resolve()}",
        "BATON_DATA_DIR": str(tmp_path / "data"),
        "BATON_FETCH_ALLOW_PRIVATE": "true",
        "BATON_LEASE_SECONDS": "5",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


@pytest.fixture
def kernel(make_kernel: MakeKernel) -> Kernel:
    """A kernel that looks at what the processes do."""
    return make_kernel(with_redis=False, lease=5)


@pytest.fixture
def start_worker(stack_env: dict[str, str]) -> Iterator[Start]:
    """Start a Celery worker of one queue and wait until it consumes."""
    started: list[Child] = []

    def start(queue: str, *arguments: str, concurrency: int = 1, **env: str) -> Child:
        child = python(
            "-m", "celery", "-A", "config", "worker", "-Q", queue, "-n", f"{queue}@test",
            "-c", str(concurrency), "--without-gossip", "--without-mingle", *arguments,
            env={**stack_env, **env},
        )  # fmt: skip
        started.append(child)
        child.wait_for_line(r"@test ready", timeout=60)
        return child

    yield start
    for child in started:
        child.__exit__()


@pytest.fixture
def start_web(stack_env: dict[str, str]) -> Iterator[Callable[..., str]]:
    """Start the web process under uvicorn and return its address."""
    started: list[Child] = []

    def start(**env: str) -> str:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        child = python(
            "-m", "uvicorn", "config.asgi:application", "--host", "127.0.0.1",
            "--port", str(port), "--timeout-graceful-shutdown", "2",
            env={**stack_env, **env},
        )  # fmt: skip
        started.append(child)
        child.wait_for_line(r"Uvicorn running", timeout=60)
        return f"http://127.0.0.1:{port}"

    yield start
    for child in started:
        child.__exit__()


@pytest.fixture
def token(transactional_db: None) -> str:
    """A token of the tenant `acme`."""
    return caller("acme").token
