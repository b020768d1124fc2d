"""What the chapters share: kernels on a database of the test's own, each standing for a machine."""

from collections.abc import Callable, Iterator

import pytest

from kernel import Definition, Kernel, KernelConfig

#: Seconds a claim of the tutorial's machines holds.
LEASE = 15

Machine = Callable[..., Kernel]


@pytest.fixture
def machine(
    mongo_url: str, redis_url: str, mongo_db_name: str, key_prefix: str
) -> Iterator[Machine]:
    """Start one more machine that serves the given definitions; all share their databases."""
    started: list[Kernel] = []

    def start(*definitions: Definition) -> Kernel:
        kernel = Kernel.connect(
            KernelConfig(
                mongo_url=mongo_url,
                redis_url=redis_url,
                database=mongo_db_name,
                key_prefix=key_prefix,
                lease=LEASE,
            )
        )
        kernel.ensure_schema()
        for definition in definitions:
            kernel.register(definition)
        started.append(kernel)
        return kernel

    yield start
    for kernel in started:
        kernel.close()
