"""A kernel behind the commands."""

from collections.abc import Iterator

import pytest

from jobs.dispatch import relay
from jobs.runtime import using_kernel
from kernel import Kernel, KernelConfig


@pytest.fixture
def kernel(mongo_url: str, mongo_db_name: str, transactional_db: None) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database."""
    kernel = Kernel.connect(KernelConfig(mongo_url=mongo_url, database=mongo_db_name, lease=5))
    kernel.ensure_schema()
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel
    kernel.close()
