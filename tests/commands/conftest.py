"""A kernel behind the commands."""

from collections.abc import Iterator

import pytest

from jobs.dispatch import relay
from jobs.runtime import using_kernel
from kernel import Kernel
from tests.kit.kernels import MakeKernel


@pytest.fixture
def kernel(make_kernel: MakeKernel, transactional_db: None) -> Iterator[Kernel]:
    """A kernel without hints on this test's own database."""
    kernel = make_kernel(with_redis=False, lease=5)
    relay.breaker.succeeded()
    with using_kernel(kernel):
        yield kernel
